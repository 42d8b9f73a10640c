"""What FastAPI and pydantic say about a parameter is in the schema of the tool: bounds that nobody checks would be a hole."""
from typing import Annotated, List, Optional

from countersign_tool import TOOLS, tool
from fastapi import Body, FastAPI, Query
from pydantic import BaseModel, Field

app = FastAPI()


class Line(BaseModel):
    sku: str
    quantity: int = Field(1, ge=1, description="How many.")


class Order(BaseModel):
    lines: List[Line]
    note: Optional[str] = None


@tool("t.query", effect="read")
@app.get("/query")
def query(text: Annotated[str, Query(min_length=2, description="Words.")], limit: int = Query(10, ge=1, le=50), mark: str = Query(...)):
    """Searches."""
    return [text, limit, mark]


@tool("t.order")
@app.post("/order")
def order(order: Order, gift: bool = Body(False)):
    """Orders."""
    return {"lines": len(order.lines), "kind": type(order.lines[0]).__name__, "order": order, "gift": gift}


schema = TOOLS["t.query"].schema
assert schema["required"] == ["text", "mark"], schema
assert schema["properties"] == {
    "text": {"type": "string", "minLength": 2, "description": "Words."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
    "mark": {"type": "string"},
}, schema
assert TOOLS["t.query"].call(query, None, b'{"text": "ab", "mark": "x"}') == ["ab", 10, "x"]

schema = TOOLS["t.order"].schema
assert schema["properties"]["order"]["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}, schema
assert schema["$defs"]["Line"]["properties"]["quantity"]["minimum"] == 1, schema
made = TOOLS["t.order"].call(order, None, b'{"order": {"lines": [{"sku": "a", "quantity": 2}]}}')
assert (made["lines"], made["kind"], made["gift"]) == (1, "Line", False), made

try:
    @tool("t.session")
    def session(raw: bytes): "Takes bytes."
except TypeError as error:
    assert "t.session, the parameter raw: there is no JSON form" in str(error), error
else:
    raise AssertionError("a type without a JSON form was taken")
print("good")
