"""Requests made from our own OpenAPI description, right and wrong ones: none brings /v1 down or out of its shapes."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from clef.engines.builtin import BuiltinEngine
from clef.settings import Settings
from clef.web.app import create_app

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
HOST = {"Host": "127.0.0.1"}
app = create_app(Settings(), BuiltinEngine())
schema = schemathesis.openapi.from_dict(app.openapi()).include(path_regex="^/v1/")
schema.app = app


@pytest.mark.filterwarnings("ignore")
@schema.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_a_reply_that_is_not_described(case: Case[Any]) -> None:
    response = case.call(headers=HOST)
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=CHECKS)
