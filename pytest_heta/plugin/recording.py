"""Where a session writes its results down, and what it takes over from earlier ones."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_heta.core._plain import exception_text
from pytest_heta.core.attempts import Attempt, with_attempts
from pytest_heta.core.fingerprint import changed_parts
from pytest_heta.core.plan import Sample
from pytest_heta.core.recorded import RecordedRun
from pytest_heta.core.records import framed, scan
from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import HetaError, ResumeRefusedError, RunError, RunNotFoundError
from pytest_heta.models import EvaluationCaseResult
from pytest_heta.plugin.option_table import LAST_RUN
from pytest_heta.plugin.options import ini_folder, source_of, usage_error

if TYPE_CHECKING:
    from pytest_heta.plugin.state import Run

__all__ = ["DOCUMENTS", "Recording"]

DOCUMENTS: Final = "documents"
"""Part of a fingerprint that is known only when the documents have been read."""

_DEAD: Final = ".dead"
_UNKNOWN: Final = "what it was about could not be written down"

Fingerprints = Mapping[str, Mapping[str, str]]
"""Parts of the fingerprint, by plan label."""


class Recording:
    """The folder of the run that this session begins or goes on with.

    Workers get it from the controller, which alone holds it.

    Attributes:
        problem: Why this run is not kept as runs are: its folder, or its file, cannot be
            written; None if all is well.
        is_temporary: Whether its folder is one of the system's temporary ones.
    """

    def __init__(self, run: Run, given: Mapping[str, Any]) -> None:
        self._run = run
        self._given = given
        self._folder: RunFolder | None = None
        self.is_temporary = False
        self._is_complete = False
        self._recorded: RecordedRun | None = None
        self._dead: set[str] = set()
        self._kept_documents: set[str] = set()
        self._source_path: Path | None = None
        self.problem: str | None = None

    # -- both kinds of process --------------------------------------------------

    @property
    def resumes(self) -> bool:
        """Whether this session goes on with a run of before."""
        return self._run.options.resume is not None

    @property
    def session_path(self) -> Path:
        """Folder of what this session writes down."""
        if self._given:
            return Path(self._given["session"])
        return self.folder.session_path

    @property
    def recorded(self) -> RecordedRun | None:
        """What earlier sessions and workers that died wrote down, None without any."""
        if self._recorded is None and self.resumes:
            earlier = self._given["earlier"] if self._given else self.folder.earlier_sessions
            self._recorded = RecordedRun([Path(path) for path in earlier])
        return self._recorded

    def with_attempts(
        self,
        label: str,
        sample: Sample,
        result: EvaluationCaseResult,
        *,
        reused_response: bool = False,
    ) -> EvaluationCaseResult:
        """Return the result of a sample that tells what earlier sessions tried in vain."""
        earlier = self.attempts(label, sample)
        return with_attempts(result, earlier, reused_response=reused_response)

    def attempts(self, label: str, sample: Sample) -> Sequence[Attempt]:
        """Return what earlier sessions tried of a sample in vain."""
        recorded = self.recorded
        return () if recorded is None else recorded.attempts(label, sample)

    def note_death(self, worker: str) -> None:
        """Let the other workers know that one has died: what it was told need not be asked."""
        self._dead.add(worker)
        with suppress(OSError):
            (self._run.directory / "spool").mkdir(exist_ok=True)
            (self._run.directory / "spool" / f"{worker}{_DEAD}").touch()

    def read_dead_workers(self) -> None:
        """Take in what the queries of workers that have died returned."""
        for path in (self._run.directory / "spool").glob(f"*{_DEAD}"):
            if path.stem not in self._dead:
                self._dead.add(path.stem)
                self._recorded = self.recorded or RecordedRun([])
                self._recorded.add_spool(self.session_path / "spool" / f"{path.stem}.jsonl")

    def keep_documents(self, label: str, digest: str) -> None:
        """Write down, in a worker, which documents a benchmark has, before it is asked.

        The controller may be killed before it hears of them; responses are on disk then.
        """
        if not self._given or label in self._kept_documents:
            return
        self._kept_documents.add(label)
        path = self.session_path / DOCUMENTS / f"{self._run.worker_id}.jsonl"
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as file:
                file.write(framed(json.dumps([label, digest]).encode()))

    # -- the controller -----------------------------------------------------------

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker has to know."""
        return {
            "session": str(self.session_path),
            "earlier": [str(path) for path in self.folder.earlier_sessions],
        }

    @property
    def run_id(self) -> str | None:
        """Id of the run, None if it has not begun."""
        return None if self._folder is None else self._folder.run_id

    @property
    def place(self) -> str | None:
        """What ``--heta-resume`` takes to go on with this run, None if it has not begun."""
        if self._folder is None:
            return None
        return str(self._folder.path) if self.is_temporary else self._folder.run_id

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """What is known of the sessions that worked on the run, with this one, in order."""
        return [] if self._folder is None else self._folder.sessions

    @property
    def damaged(self) -> int:
        """Pieces of what ended sessions and workers wrote down that cannot be read."""
        ended = RecordedRun([])
        for worker in self._dead:
            ended.add_spool(self.session_path / "spool" / f"{worker}.jsonl")
        recorded = self.recorded
        return ended.damaged + (0 if recorded is None else recorded.damaged)

    @property
    def told_damage(self) -> int:
        """How many of them earlier sessions have told of."""
        return 0 if self._folder is None else self._folder.told_damage

    def note_concurrency(self, label: str, at_once: int) -> None:
        """Note how many queries of a plan are asked at the same time."""
        with self._noting():
            self.folder.note_concurrency(label, at_once)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Let the session go on where the run's file cannot be written: results are elsewhere."""
        try:
            yield
        except RunError as error:
            self.problem = self.problem or error.message

    def check(self) -> None:
        """Refuse a run to resume that is not there, before anything is collected.

        Raises:
            pytest.UsageError: if there is no such run.
        """
        if self.resumes:
            try:
                self._resumed_path()
            except HetaError as error:
                raise usage_error(error, self._source) from error

    @property
    def folder(self) -> RunFolder:
        """The run's folder; made, or opened, when it is first asked for.

        Raises:
            pytest.UsageError: if the run to resume cannot be opened.
        """
        if self._folder is None:
            try:
                self._folder = self._resumed() if self.resumes else self._begun()
            except HetaError as error:
                raise usage_error(error, self._source) from error
        return self._folder

    @property
    def _source(self) -> str:
        return source_of(self._run.config, "resume" if self.resumes else "runs-dir")

    def _resumed(self) -> RunFolder:
        folder = RunFolder.open(self._resumed_path())
        folder.begin_session()
        return folder

    def _resumed_path(self) -> Path:
        if self._source_path is None:  # another run may begin meanwhile, and be the last one
            self._source_path = self._found_path()
        return self._source_path

    def _found_path(self) -> Path:
        wanted = self._run.options.resume
        assert wanted is not None  # noqa: S101 - for the type checker: asked for by `resumes`
        parent = self._runs_dir
        if wanted == LAST_RUN:
            runs = RunFolder.runs(parent) if parent is not None else []
            if not runs:
                raise RunNotFoundError(
                    "there is no run to go on with",
                    where=str(parent) if parent is not None else None,
                    hint="name its folder: --heta-resume=PATH",
                )
            return runs[0]
        named = self._run.config.invocation_params.dir / Path(wanted).expanduser()
        for path in (named, *([parent / wanted] if parent is not None else [])):
            with suppress(OSError):  # such as a name that is too long
                if (path / "run.json").is_file():
                    return path
        known = [path.name for path in RunFolder.runs(parent)] if parent is not None else []
        listed = ", ".join(known[:5]) or "none"
        raise RunNotFoundError(f"there is no run {wanted!r}", hint=f"known runs: {listed}")

    def _begun(self) -> RunFolder:
        run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        parent = self._runs_dir
        if parent is not None:
            try:
                RunFolder.prune(parent)
                return RunFolder.create(parent, run_id=run_id)
            except HetaError as error:
                if self._run.options.runs_dir is not None:
                    raise
                self.problem = error.message
        self.is_temporary = True
        return RunFolder.create(Path(tempfile.mkdtemp(prefix="pytest-heta-run-")), run_id=run_id)

    @cached_property
    def _runs_dir(self) -> Path | None:
        """Folder of all runs, None if nothing is kept beyond a temporary folder."""
        config, given = self._run.config, self._run.options.runs_dir
        if given is not None:
            from_ini = source_of(config, "runs-dir") == "heta_runs_dir"
            base = ini_folder(config) if from_ini else config.invocation_params.dir
            return base / Path(given).expanduser()
        cache = getattr(config, "cache", None)  # not there without pytest's cacheprovider
        try:
            return cache.mkdir("heta-runs") if cache is not None else None
        except OSError as error:
            self.problem = exception_text(error)
            return None

    # -- fingerprints ---------------------------------------------------------------

    def compare(self, now: Fingerprints) -> None:
        """Note what the run is about; refuse to resume one that was about something else.

        Raises:
            pytest.UsageError: naming what changed.
        """
        folder = self.folder
        before = {label: dict(parts) for label, parts in folder.fingerprints.items()}
        if not self.resumes or not (before or self.recorded):
            with self._noting():
                folder.set_fingerprints(now)
            return
        for label, digest in _kept_documents(folder.earlier_sessions):
            if label in before:
                before[label].setdefault(DOCUMENTS, digest)
        problems = list(_differences(before, now)) if before else [_UNKNOWN]
        if problems:
            error = ResumeRefusedError(
                f"the run {folder.run_id} cannot be resumed: {'; '.join(problems)}",
                where=str(folder.path),
                hint="undo the change, or begin a new run without --heta-resume",
            )
            raise usage_error(error, self._source)

    def note_documents(self, label: str, digest: str) -> None:
        """Note which documents a benchmark has, once they have been read."""
        known = {key: dict(parts) for key, parts in self.folder.fingerprints.items()}
        if known.get(label, {}).get(DOCUMENTS) != digest:
            known.setdefault(label, {})[DOCUMENTS] = digest
            with self._noting():
                self.folder.set_fingerprints(known)

    # -- the end ----------------------------------------------------------------------

    def end(self, *, complete: bool, interrupted: str | None) -> None:
        """Note how the session ended.

        Args:
            complete: Whether nobody has to go on with the run.
            interrupted: Why the session ended early, None if it did not.
        """
        if self._folder is not None:
            self._is_complete = complete
            with self._noting():
                self._folder.end_session(
                    complete=complete, interrupted=interrupted, damaged=self.damaged
                )

    def close(self) -> None:
        """Let go of the folder; one that nobody can go on with, or has to, is removed."""
        if self._folder is None:
            return
        is_empty = not self.resumes and not any(self._folder.session_path.glob("*"))
        if self.resumes:
            with suppress(RunError):
                self._folder.drop_session()
        self._folder.release()
        if is_empty or (self.is_temporary and self._is_complete):
            path = self._folder.path
            shutil.rmtree(path.parent if self.is_temporary else path, ignore_errors=True)


def _kept_documents(sessions: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield plan labels and hashes of documents that workers wrote down."""
    for session in sessions:
        for path in (session / DOCUMENTS).glob("*.jsonl"):
            with suppress(OSError):
                content = path.read_bytes()
                for record in scan(content):
                    label, digest = json.loads(content[record.offset :][: record.length])
                    yield label, digest


def _differences(before: Fingerprints, now: Fingerprints) -> Iterator[str]:
    for label in sorted({*before, *now}):
        if label not in now:
            yield f"benchmark {label} is no longer part of it"
        elif label not in before:
            yield f"benchmark {label} was not part of it"
        else:
            known = {part: value for part, value in now[label].items() if part in before[label]}
            old = {part: value for part, value in before[label].items() if part in known}
            changed = changed_parts(old, known)
            if changed:
                yield f"{label}: {', '.join(changed)} changed"
