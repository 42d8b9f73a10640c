"""The proxy of FastMCP over one MCP server: `fastmcp_proxy.py PORT URL`. Without sessions and with JSON answers, which is its fastest way."""

import sys

from fastmcp.server import create_proxy

PORT, URL = int(sys.argv[1]), sys.argv[2]

if __name__ == "__main__":
    proxy = create_proxy(URL, name="bench")
    proxy.run(
        transport="http",
        host="127.0.0.1",
        port=PORT,
        log_level="error",
        show_banner=False,
        stateless_http=True,
        json_response=True,
        uvicorn_config={"access_log": False},
    )
