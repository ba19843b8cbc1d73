"""Where a session writes its results down, and what it takes over from earlier ones."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_heta.core._plain import exception_text
from pytest_heta.core.fingerprint import changed_parts
from pytest_heta.core.recorded import RecordedRun
from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import HetaError, ResumeRefusedError, RunError, RunNotFoundError
from pytest_heta.plugin.option_table import LAST_RUN
from pytest_heta.plugin.options import ini_folder, source_of, usage_error

if TYPE_CHECKING:
    from pytest_heta.plugin.state import Run

__all__ = ["DOCUMENTS", "Recording"]

DOCUMENTS: Final = "documents"
"""Part of a fingerprint that is known only when the documents have been read."""

_DEAD: Final = ".dead"

Fingerprints = Mapping[str, Mapping[str, str]]
"""Parts of the fingerprint, by plan label."""


class Recording:
    """The folder of the run that this session begins or goes on with.

    Workers get it from the controller, which alone holds it.

    Attributes:
        problem: Why results are kept in a temporary folder, None if they are not.
    """

    def __init__(self, run: Run, given: Mapping[str, Any]) -> None:
        self._run = run
        self._given = given
        self._folder: RunFolder | None = None
        self._is_temporary = False
        self._is_complete = False
        self._recorded: RecordedRun | None = None
        self._dead: set[str] = set()
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
            earlier = self._given.get("earlier", ()) or self.folder.earlier_sessions
            self._recorded = RecordedRun([Path(path) for path in earlier])
        return self._recorded

    def note_death(self, worker: str) -> None:
        """Let the other workers know that one has died: what it was told need not be asked."""
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
        return str(self._folder.path) if self._is_temporary else self._folder.run_id

    @property
    def sessions(self) -> int:
        """How many sessions worked on the run, with this one; 0 if it has not begun."""
        return 0 if self._folder is None else self._folder.session

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
                parent.mkdir(parents=True, exist_ok=True)
                RunFolder.prune(parent)
                return RunFolder.create(parent, run_id=run_id)
            except (OSError, HetaError) as error:
                if self._run.options.runs_dir is not None:
                    known = error if isinstance(error, HetaError) else RunError(str(error))
                    raise usage_error(known, self._source) from error
                self.problem = exception_text(error)
        self._is_temporary = True
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
        before: Fingerprints = folder.fingerprints
        if not self.resumes or not before:
            folder.set_fingerprints(now)
            return
        problems = list(_differences(before, now))
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
            with suppress(RunError):  # the results are there all the same
                self._folder.end_session(complete=complete, interrupted=interrupted)

    def close(self) -> None:
        """Let go of the folder; one that nobody can go on with, or has to, is removed."""
        if self._folder is None:
            return
        self._folder.release()
        is_empty = not self.resumes and not any(self._folder.session_path.iterdir())
        if is_empty or (self._is_temporary and self._is_complete):
            path = self._folder.path
            shutil.rmtree(path.parent if self._is_temporary else path, ignore_errors=True)


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
