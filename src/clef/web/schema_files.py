"""Turns the schemas that ship with clef into addresses that an editor can be given."""

from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

router = APIRouter(prefix="/schemas", include_in_schema=False)


@router.get("/questions.json")
def questions() -> Response:
    """The JSON schema of question files."""
    text = files("clef.tables").joinpath("questions.schema.json").read_bytes()
    return Response(text, media_type="application/schema+json")
