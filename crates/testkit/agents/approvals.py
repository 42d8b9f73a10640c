"""How a program lets its user answer the questions of the server."""

# docs: begin approvals
import json
import urllib.request


def pending(server, user_key):
    """The questions that wait for the user: each with `id`, `tool` and `arguments`."""
    return ask(f"{server}/v1/approvals?state=pending", user_key)["approvals"]


def answer(server, user_key, approval_id, decision):
    """Answers a question with `approve` or `deny`, in the user's name."""
    return ask(f"{server}/v1/approvals/{approval_id}", user_key, {"decision": decision})


def ask(url, key, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as reply:
        return json.load(reply)


# docs: end
