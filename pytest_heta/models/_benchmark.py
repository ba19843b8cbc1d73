"""What a benchmark brings: documents, cases, evidence and run units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pytest_heta.errors import ModelInvalidError, shown
from pytest_heta.models._base import HetaModel, Identifier, Identifiers, Metadata, in_one_order

BuildScope = Literal["corpus", "case", "group"]
"""What one knowledge base covers: the whole corpus, one case, or a group of cases."""

LARGEST_GRADE: Final = 1e15
"""Up to here floats hold every integer; real grades are below 10."""


class BenchmarkManifest(HetaModel):
    """What a benchmark is: its identity and its terms of use.

    Attributes:
        name: Identity of the benchmark; it stands in node ids and raw keys,
            so it is made of ``A-Z a-z 0-9 _ -``.
        version: Version of the data, in the publisher's words.
        split: Part of the data, such as ``test`` or ``dev``.
        task_type: Kind of task, such as ``retrieval`` or ``question_answering``.
        build_scope: Hint at what one knowledge base covers. The plan itself
            comes from `BenchmarkProtocol.run_units`.
        homepage: Address of the publisher's page.
        license: Terms of use of the data.
        citation: How to cite the data.
        metadata: Anything else; it goes to the report unchanged.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    version: str = "1"
    split: str = Field(default="test", pattern=r"^[A-Za-z0-9_.-]+$")
    task_type: str = "retrieval"
    build_scope: BuildScope = "corpus"
    homepage: str | None = None
    license: str | None = None
    citation: str | None = None
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkResource(HetaModel):
    """A file, folder or archive that a benchmark is read from.

    Attributes:
        name: Name of the resource within the benchmark.
        uri: Where it is: a path or an address.
        kind: Kind of resource.
        checksum: Expected checksum as ``algorithm:hex digits``.
        size_bytes: Expected size in bytes.
        required: Whether the benchmark cannot run without it.
        metadata: Anything else.
    """

    name: str
    uri: str
    kind: str = "file"
    checksum: str | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    required: bool = True
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkWorkspace(HetaModel):
    """Folders that an adapter may use while it prepares.

    Attributes:
        root_dir: Folder that relative resources are looked up in.
        cache_dir: Folder for what may be kept between runs.
        output_dir: Folder for what the run makes.
    """

    root_dir: Path
    cache_dir: Path
    output_dir: Path | None = None


class PreparedBenchmark(HetaModel):
    """A benchmark whose resources are on this machine.

    Attributes:
        manifest: The benchmark's manifest.
        root_dir: Folder the data is read from.
        resources: What was prepared.
        metadata: Anything the adapter wants to find again in later calls.
    """

    manifest: BenchmarkManifest
    root_dir: Path
    resources: tuple[BenchmarkResource, ...] = ()
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkDocument(HetaModel):
    """A source document of a benchmark; its content has exactly one origin.

    Attributes:
        document_id: Identity within the benchmark.
        name: File name, with the ending that says how to parse it.
        media_type: Media type, such as ``text/plain`` or ``application/pdf``.
        data: The content itself.
        path: File with the content.
        source_uri: Address of the content, opened by fsspec.
        metadata: Anything else; a recipe reads it with ``objects.metadata(key)``.
    """

    document_id: Identifier
    name: str = Field(min_length=1)
    media_type: str = "text/plain"
    data: bytes | None = None
    path: Path | None = None
    source_uri: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        given = (self.data is not None) + (self.path is not None) + (self.source_uri is not None)
        if given != 1:
            raise ModelInvalidError(
                f"BenchmarkDocument: document {self.document_id!r} needs exactly one of data,"
                f" path and source_uri, not {given}"
            )
        return self


class BenchmarkEvidence(HetaModel):
    """Something that a good response retrieves: a relevance judgment.

    Attributes:
        reference_id: Id of the judged document.
        locator: Place within the documents, such as ``{"document_id": "a",
            "page_index": 3}``. It may hold any field. Some have a meaning of
            their own and a plural, such as document_id and source_key: see
            `pytest_heta.evaluators.provenance`.
        text: Text that stands in the evidence.
        metadata: Anything else. ``relevance`` is the grade of the judgment.
    """

    reference_id: Identifier | None = None
    locator: Metadata = Field(default_factory=dict)
    text: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _points_somewhere(self) -> Self:
        if self.reference_id is None and not self.locator and not self.text:
            raise ModelInvalidError(
                "BenchmarkEvidence: a reference_id, a locator or a text is required"
            )
        return self

    @property
    def grade(self) -> float:
        """Grade of the judgment (``metadata["relevance"]``), 1 when none is given.

        Raises:
            ModelInvalidError: if it is not a number, or beyond ±1e15.
        """
        relevance = self.metadata.get("relevance")
        try:
            grade = 1.0 if relevance is None else float(relevance)
        except (TypeError, ValueError, OverflowError):
            grade = math.nan
        if not abs(grade) <= LARGEST_GRADE:  # NaN is not either
            evidence = self.reference_id or self.locator or self.text
            raise ModelInvalidError(
                f"relevance {shown(relevance)} of the evidence {shown(evidence)} is no grade",
                hint="a grade is a number of at most 1e15; above 0 means relevant",
            )
        return grade


class BenchmarkExpected(HetaModel):
    """What is expected of the response to a case.

    Attributes:
        answers: Accepted answers; any of them is right.
        evidence: Judged evidence, also the judgments of grade 0 and below.
        value: A structured expectation for evaluators of one's own.
        metadata: Anything else.
    """

    answers: Annotated[tuple[str, ...], BeforeValidator(in_one_order)] = ()
    evidence: tuple[BenchmarkEvidence, ...] = ()
    value: Any = None
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkCase(HetaModel):
    """One query of a benchmark with what is expected of its response.

    Attributes:
        case_id: Identity within the benchmark.
        query: Text of the query.
        expected: What is expected of the response.
        labels: Labels to select and group by, such as ``question_type``.
        metadata: Anything else.
    """

    case_id: Identifier
    query: str
    expected: BenchmarkExpected = Field(default_factory=BenchmarkExpected)
    labels: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkRunUnit(HetaModel):
    """One knowledge base to build, and the cases to ask it.

    Attributes:
        unit_id: Identity within the benchmark.
        document_ids: Documents of the knowledge base. Empty means all of
            them, which only a benchmark with a single unit may say.
        case_ids: Cases to ask. Empty means all of them, as above.
        metadata: Anything else; the fixture ``heta_unit`` passes it on.
    """

    unit_id: Identifier
    document_ids: Identifiers = ()
    case_ids: Identifiers = ()
    metadata: Metadata = Field(default_factory=dict)
