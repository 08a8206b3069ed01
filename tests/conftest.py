"""What every test shares: settings that nothing outside the test can change."""

import os

import pytest
from hypothesis import settings

# No limit of time for an example, since a machine may be busy; the same examples at each run, so that what passed once
# passes again. `--hypothesis-profile=default` looks at others.
settings.register_profile("clef", deadline=None, derandomize=True)
settings.load_profile("clef")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in list(os.environ):
        if name.startswith("CLEF_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLEF_DATA_DIR", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: the driver keeps an event loop running in this thread, beside which no other may run."""

    def drives(item: pytest.Item) -> bool:
        return item.get_closest_marker("browser") is not None or "browser" in getattr(item, "fixturenames", ())

    items.sort(key=drives)
