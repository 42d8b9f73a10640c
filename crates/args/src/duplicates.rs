//! Duplicate names in an object: equal values are collapsed to one, different values are an error, in the text itself
//! and in every text that is decoded from it.

use countersign_contract::IssueCode;

use crate::coerce::trail::Step;
use crate::report::Finding;
use crate::schema::escape;
use crate::strict::has_duplicates;
use crate::tolerant::SyntaxLog;
use crate::tree::{Kind, NONE, NodeId, Tree};
use crate::words::Say;

/// A name that stands in an object twice, with different values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    /// The second of the two.
    pub(crate) member: NodeId,
    object: NodeId,
}

/// Removes repeated members below `root`. Refuses them if their values differ.
pub(crate) fn collapse(
    tree: &mut Tree<'_>,
    root: NodeId,
    log: &mut SyntaxLog,
) -> Result<(), Conflict> {
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        if tree.kind(node) == Kind::Object && has_duplicates(tree, node) {
            collapse_one(tree, node, log)?;
        }
        stack.extend(
            tree.children(node)
                .filter(|child| tree.node(*child).count > 0),
        );
    }
    Ok(())
}

fn collapse_one(tree: &mut Tree<'_>, object: NodeId, log: &mut SyntaxLog) -> Result<(), Conflict> {
    let members: Vec<NodeId> = tree.children(object).collect();
    let mut first = std::collections::HashMap::new();
    let mut kept: Vec<NodeId> = Vec::with_capacity(members.len());
    for member in members {
        let mut json = String::new();
        crate::render::comparable(tree, member, &mut json);
        match first.get(tree.key(member)) {
            None => {
                first.insert(tree.key(member).to_owned(), json);
                kept.push(member);
            }
            Some(known) if *known == json => {
                log.whole(IssueCode::DuplicateCollapsed, tree.node(member).span);
            }
            Some(_) => return Err(Conflict { member, object }),
        }
    }
    tree.node_mut(object).count = 0;
    let mut last = NONE;
    for member in kept {
        tree.node_mut(member).next = NONE;
        tree.append(object, &mut last, member);
    }
    Ok(())
}

impl Conflict {
    /// Builds the refusal.
    pub(crate) fn finding(self, tree: &Tree<'_>, root: NodeId) -> Finding {
        let name = tree.key(self.member);
        let span = tree.node(self.member).span.range();
        let mut path = String::new();
        for step in self.steps(tree, root) {
            path.push('/');
            match step {
                Step::Key(key) => path.push_str(&escape(tree.str(key))),
                Step::Index(index) => path.push_str(&index.to_string()),
            }
        }
        Finding {
            path,
            span: Some([span.start, span.end]),
            expected: Some(Say::EachNameOnce),
            suggestion: Some(Self::suggestion(name)),
            ..Finding::new(IssueCode::DuplicateKey)
        }
    }

    /// Returns what to send instead.
    pub(crate) fn suggestion(name: &str) -> Say {
        Say::SendOnce {
            name: name.to_owned(),
        }
    }

    /// Returns the steps from a node down to the member. They are only computed for a refusal. Each container
    /// remembers its parent, so that only the requested path is built.
    pub(crate) fn steps(self, tree: &Tree<'_>, root: NodeId) -> Vec<Step> {
        let mut found: Vec<(NodeId, usize, Step)> = vec![(root, 0, Step::Index(0))];
        let mut at = 0;
        while let Some(&(node, ..)) = found.get(at) {
            if node == self.object {
                break;
            }
            for (i, child) in tree.children(node).enumerate() {
                if tree.node(child).count > 0 {
                    found.push((child, at, step(tree, node, child, i)));
                }
            }
            at += 1;
        }
        let mut steps = vec![Step::Key(tree.node(self.member).key)];
        while let Some((_, parent, step)) = found.get(at).filter(|_| at > 0) {
            steps.push(*step);
            at = *parent;
        }
        steps.reverse();
        steps
    }
}

fn step(tree: &Tree<'_>, parent: NodeId, child: NodeId, index: usize) -> Step {
    if tree.kind(parent) == Kind::Array {
        Step::Index(index)
    } else {
        Step::Key(tree.node(child).key)
    }
}
