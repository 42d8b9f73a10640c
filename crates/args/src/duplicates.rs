//! Duplicate names in an object: equal values are collapsed to one, different values are an error.

use countersign_contract::IssueCode;

use crate::report::Finding;
use crate::schema::escape;
use crate::strict::has_duplicates;
use crate::tolerant::SyntaxLog;
use crate::tree::{Kind, NONE, NodeId, Tree};
use crate::words::Say;

/// Removes repeated members below `root`. Refuses them if their values differ.
pub(crate) fn collapse(
    tree: &mut Tree<'_>,
    root: NodeId,
    log: &mut SyntaxLog,
) -> Result<(), Box<Finding>> {
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        if tree.kind(node) == Kind::Object && has_duplicates(tree, node) {
            collapse_one(tree, node, root, log)?;
        }
        stack.extend(
            tree.children(node)
                .filter(|child| tree.node(*child).count > 0),
        );
    }
    Ok(())
}

fn collapse_one(
    tree: &mut Tree<'_>,
    object: NodeId,
    root: NodeId,
    log: &mut SyntaxLog,
) -> Result<(), Box<Finding>> {
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
            Some(_) => return Err(Box::new(conflict(tree, member, object, root))),
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

fn conflict(tree: &Tree<'_>, member: NodeId, object: NodeId, root: NodeId) -> Finding {
    let key = tree.key(member);
    let span = tree.node(member).span.range();
    Finding {
        path: format!("{}/{}", path_to(tree, root, object), escape(key)),
        span: Some([span.start, span.end]),
        expected: Some(Say::EachNameOnce),
        suggestion: Some(Say::SendOnce {
            name: key.to_owned(),
        }),
        ..Finding::new(IssueCode::DuplicateKey)
    }
}

/// Returns the pointer from one node to another below it. It is only computed for a refusal. Each container
/// remembers its parent, so that only the requested path is written.
fn path_to(tree: &Tree<'_>, root: NodeId, target: NodeId) -> String {
    let mut found: Vec<(NodeId, usize, String)> = vec![(root, 0, String::new())];
    let mut at = 0;
    while let Some(&(node, ..)) = found.get(at) {
        if node == target {
            break;
        }
        for (i, child) in tree.children(node).enumerate() {
            if tree.node(child).count > 0 {
                found.push((child, at, step(tree, node, child, i)));
            }
        }
        at += 1;
    }
    let mut steps = Vec::new();
    while let Some((_, parent, step)) = found.get(at).filter(|_| at > 0) {
        steps.push(step.as_str());
        at = *parent;
    }
    let mut path = String::new();
    for step in steps.into_iter().rev() {
        path.push('/');
        path.push_str(step);
    }
    path
}

fn step(tree: &Tree<'_>, parent: NodeId, child: NodeId, index: usize) -> String {
    if tree.kind(parent) == Kind::Array {
        index.to_string()
    } else {
        escape(tree.key(child))
    }
}
