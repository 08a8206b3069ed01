"""Turns the name of a decision model into its files: where they are published, how large, and under which licence.

A name is `clef-flash` or `clef-flash:Q8_0`, any case. Sizes in bytes where they were published, else rounded as the
model's page rounds them; a download goes by what the hub says. Sources: the model pages of the repositories named
here, read in November 2026.
"""

from dataclasses import dataclass

from clef.errors import NotFound


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    quantisation: str
    """How the weights are stored, such as Q8_0."""
    file: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A decision model that llama.cpp's /v1/systemone serves."""

    name: str
    title: str
    repo: str
    licence: str
    decision_type: str
    """How it decides; llama.cpp has code for each type."""
    parameters: str
    about: str
    files: tuple[ModelFile, ...]
    """Smallest first."""
    max_options: int
    bytes_per_token: int
    """Memory beside the weights for each token of context. Measured for Clef-Flash (14.1 GiB at 16,384 tokens with
    5.5 GiB of weights); in proportion to the size for the others."""
    is_joint: bool = False
    """Whether the questions of a request are decided together, in one prompt."""
    projector: ModelFile | None = None
    """What lets it read images."""

    @property
    def is_free_to_use(self) -> bool:
        """Whether the licence allows commercial use."""
        return "NC" not in self.licence

    def file_of(self, quantisation: str) -> ModelFile:
        """The file of a quantisation. Raises NotFound with the choices there are."""
        for file in self.files:
            if file.quantisation.lower() == quantisation.lower():
                return file
        there = ", ".join(f"{self.name}:{file.quantisation}" for file in self.files)
        raise NotFound(f'{self.title} has no quantisation "{quantisation}"', hint=f"there are: {there}")


def _files(title: str, **sizes: float) -> tuple[ModelFile, ...]:
    """Files named as their publisher names them, by their sizes in bytes."""
    return tuple(ModelFile(name, f"{title}-{name}.gguf", int(size)) for name, size in sizes.items())


CATALOGUE: tuple[CatalogueModel, ...] = (
    CatalogueModel(
        name="clef-flash",
        title="Clef-Flash",
        repo="ggml-org/Clef-Flash-GGUF",
        licence="Apache-2.0",
        decision_type="clef",
        parameters="9B",
        about="The model clef is made for. Wants a GPU: on a processor it takes seconds a decision.",
        files=_files("Clef-Flash", Q4_K_M=6_486_448_288, Q8_0=9_657_260_192, BF16=18_164_488_352),
        max_options=255,
        bytes_per_token=563_000,
        is_joint=True,
        projector=ModelFile("BF16", "mmproj-Clef-Flash-BF16.gguf", 922_000_000),
    ),
    CatalogueModel(
        name="clef",
        title="Clef",
        repo="ggml-org/Clef-GGUF",
        licence="Apache-2.0",
        decision_type="clef",
        parameters="27B",
        about="The larger sister of Clef-Flash: more right answers, about five times the time.",
        files=_files("Clef", Q4_K_M=19.2e9, Q8_0=28.7e9),
        max_options=255,
        bytes_per_token=1_000_000,
        is_joint=True,
    ),
    CatalogueModel(
        name="julia-1",
        title="Julia-1",
        repo="ggml-org/Julia-1-GGUF",
        licence="Apache-2.0",
        decision_type="laya",
        parameters="144M",
        about="Small and multilingual; quick on any processor.",
        files=_files("Julia-1", Q8_0=168_166_496),
        max_options=255,
        bytes_per_token=40_000,
    ),
    CatalogueModel(
        name="laya",
        title="Laya",
        repo="ggml-org/Laya-GGUF",
        licence="Apache-2.0",
        decision_type="laya",
        parameters="421M",
        about="An encoder that fits any machine; reads 48 tokens of each option.",
        files=_files("Laya", Q8_0=449e6),
        max_options=255,
        bytes_per_token=60_000,
    ),
    CatalogueModel(
        name="kev-0.8b",
        title="Kev-0.8B",
        repo="ggml-org/Kev-0.8B-GGUF",
        licence="Apache-2.0",
        decision_type="kev",
        parameters="0.8B",
        about="Small enough for a processor.",
        files=_files("Kev-0.8B", Q8_0=812e6),
        max_options=255,
        bytes_per_token=100_000,
    ),
    CatalogueModel(
        name="kev-4b",
        title="Kev-4B",
        repo="ggml-org/Kev-4B-GGUF",
        licence="Apache-2.0",
        decision_type="kev",
        parameters="4B",
        about="For a GPU of 6 to 10 GB.",
        files=_files("Kev-4B", Q4_K_M=3.0e9, Q8_0=4.5e9, BF16=8.4e9),
        max_options=255,
        bytes_per_token=250_000,
    ),
    CatalogueModel(
        name="lev",
        title="lev",
        repo="ggml-org/lev-GGUF",
        licence="Apache-2.0",
        decision_type="lev",
        parameters="4B",
        about="Reads each choice in two orders; slower than others of its size.",
        files=_files("lev", Q4_K_M=3.0e9, Q8_0=4.5e9),
        max_options=255,
        bytes_per_token=250_000,
    ),
    CatalogueModel(
        name="openjev",
        title="OpenJev",
        repo="ggml-org/OpenJev-GGUF",
        licence="CC-BY-NC-4.0",
        decision_type="openjev",
        parameters="27B",
        about="Reads images; not for commercial use.",
        files=_files("OpenJev", Q4_K_M=19e9, Q8_0=28_595_765_408),
        max_options=52,
        bytes_per_token=1_000_000,
        projector=ModelFile("Q8_0", "mmproj-OpenJev-Q8_0.gguf", 629_247_232),
    ),
    CatalogueModel(
        name="nimble",
        title="Bespoke-Nimble-9B-v3",
        repo="ggml-org/Bespoke-Nimble-9B-v3-GGUF",
        licence="CC-BY-NC-4.0",
        decision_type="nimble",
        parameters="9B",
        about="Lists all questions in the prompt; not for commercial use. Sizes as of other models with 9B.",
        files=_files("Bespoke-Nimble-9B-v3", Q4_K_M=6.5e9, Q8_0=9.7e9),
        max_options=52,
        bytes_per_token=563_000,
    ),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a name asks for."""

    model: CatalogueModel
    file: ModelFile | None
    """None where the name leaves the quantisation open."""

    @property
    def name(self) -> str:
        """The name in its usual form."""
        return self.model.name if self.file is None else f"{self.model.name}:{self.file.quantisation}"


def is_name(text: str) -> bool:
    """Whether a text names a model of the catalogue, rather than a file."""
    base = text.partition(":")[0].lower()
    return any(base in (model.name, model.repo.lower()) for model in CATALOGUE)


def named(text: str) -> Wanted:
    """What a name asks for; the repository's name works as well. Raises NotFound with the names there are."""
    base, _, quantisation = text.partition(":")
    for model in CATALOGUE:
        if base.lower() in (model.name, model.repo.lower()):
            return Wanted(model, model.file_of(quantisation) if quantisation else None)
    hint = f"there are: {', '.join(model.name for model in CATALOGUE)}"
    raise NotFound(f'no decision model is called "{text}"', hint=hint)
