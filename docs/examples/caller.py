"""Calls a tool of Countersign, retries safely, and waits for the user's confirmation. Needs Python 3.9, nothing else.

    python3 caller.py notes.add '{"text": "buy tea"}'
"""
import http.client, json, os, sys, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8787")
API_KEY = os.environ.get("COUNTERSIGN_KEY")  # csk_…; not needed before the server has its first key


def call(tool, arguments, key, patience_seconds=300):
    """Returns the tool's data. `key` is new for each intention and the same for each retry of it."""
    body = json.dumps({"arguments": arguments, "idempotency_key": key}).encode()
    headers = {"Content-Type": "application/json", "Prefer": "wait=30"}
    if API_KEY:
        headers["Authorization"] = f"Bearer {API_KEY}"
    end, pause = time.monotonic() + patience_seconds, 0.5
    while True:
        request = urllib.request.Request(f"{SERVER}/v1/tools/{tool}", body, headers)
        try:
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    return json.load(reply)["data"]
            except urllib.error.HTTPError as reply:
                error = json.load(reply)["error"]
        except (OSError, http.client.HTTPException, ValueError) as lost:
            # No answer, or half of one: the call may have run, and the key makes the retry safe.
            error = {"code": "NO_ANSWER", "message": str(lost), "details": {"retryable": True}}
        details = error["details"]
        waits = error["code"] == "NEEDS_USER_CONFIRMATION"
        if time.monotonic() > end or not (waits or details["retryable"]):
            raise RuntimeError(f"{error['code']}: {error['message']}. {details.get('hint', '')}")
        if waits:
            print("waiting for the user to answer", details["approval_id"], file=sys.stderr, flush=True)
        time.sleep(details.get("retry_after_ms", pause * 1000) / 1000)
        pause = min(pause * 2, 10)


if __name__ == "__main__":
    print(json.dumps(call(sys.argv[1], json.loads(sys.argv[2]), key=str(uuid.uuid4()))))
