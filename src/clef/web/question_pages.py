"""Turns a file of questions into the questions of the Ask form, and those of the form into a file."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.responses import Response

from clef.errors import ClefError
from clef.web.drafts import drafts_of, questions_of
from clef.web.errors import Json
from clef.web.render import problems


def question_pages() -> APIRouter:
    """Opening and saving, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.post("/ask/questions")
    async def open_file(request: Request) -> Response:
        """The questions of a file (YAML or JSON) as drafts; what is wrong with the file is a fragment."""
        from clef.tables.questionset import read_question_set

        body = await request.body()
        try:
            return Json({"questions": drafts_of(await asyncio.to_thread(read_question_set, body))})
        except ClefError as error:
            return problems(request, error, in_file=True)

    @router.post("/ask/questions.yaml")
    async def save_file(request: Request) -> Response:
        """The questions of a draft as a question file."""
        from clef.tables.questionset import write_question_set

        text = (await request.body()).decode("utf-8", "replace")
        try:
            return PlainTextResponse(write_question_set(questions_of(text)))
        except ClefError as error:
            return problems(request, error)

    return router
