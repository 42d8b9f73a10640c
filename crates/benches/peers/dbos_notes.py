"""A keyed durable write with DBOS: one note of a user, under the workflow id that the caller chose.

Takes the port and the address of a PostgreSQL database.
"""

import sys
import uuid

import uvicorn
from dbos import DBOS, DBOSConfig, SetWorkflowID
from fastapi import FastAPI, Header, Request

port, url = int(sys.argv[1]), sys.argv[2].replace("postgres://", "postgresql://", 1)
app = FastAPI()
DBOS(config=DBOSConfig(name="notes", system_database_url=url, log_level="ERROR"))


@DBOS.step()
async def write(user: str, text: str) -> dict:
    # The step's result is what DBOS keeps durably: the note itself.
    return {"note_id": str(uuid.uuid4()), "user": user, "text": text}


@DBOS.workflow()
async def add(user: str, text: str) -> dict:
    return await write(user, text)


@app.post("/notes")
async def post(request: Request, idempotency_key: str = Header()) -> dict:
    body = await request.json()
    with SetWorkflowID(idempotency_key):
        return await add(body["user_id"], body["arguments"]["text"])


DBOS.launch()
uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
