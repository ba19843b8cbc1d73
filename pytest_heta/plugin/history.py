"""What a report says of the sessions that its results come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_heta.codes import coded
from pytest_heta.models import ModeSummary
from pytest_heta.plugin.recording import Recording

__all__ = [
    "concurrency_of",
    "damage_line",
    "facts_of_run",
    "history_of",
    "keeping_line",
    "mixed_concurrency",
]


def facts_of_run(recording: Recording) -> dict[str, Any]:
    """Return what holds for all reports of a run."""
    sessions = recording.sessions
    seconds = [session["seconds"] for session in sessions if session["seconds"] is not None]
    return {
        "run_id": recording.run_id,
        "session": len(sessions),
        "duration_seconds": round(sum(seconds), 3),
        "damaged_records": recording.damaged,
    }


def history_of(
    recording: Recording, label: str, summaries: Mapping[str, ModeSummary]
) -> dict[str, Any]:
    """Return what a report says of its sessions, and of what they took over.

    Args:
        recording: Where the run is written down.
        label: Label of the report's plan.
        summaries: Its aggregates, by mode.
    """
    sessions = [
        {**session, "concurrency": session["concurrency"].get(label)}
        for session in recording.sessions
    ]
    modes = summaries.values()
    return {
        **facts_of_run(recording),
        "sessions": sessions,
        "reused_samples": sum(mode.reused_samples for mode in modes),
        "reused_responses": sum(mode.reused_responses for mode in modes),
        "attempts": sum(mode.attempts for mode in modes),
    }


def _concurrencies(recording: Recording, label: str) -> dict[int, int]:
    """Return how many queries were asked at once, by the session that asked."""
    known = ((session["number"], session["concurrency"]) for session in recording.sessions)
    return {number: of_plan[label] for number, of_plan in known if label in of_plan}


def concurrency_of(recording: Recording, label: str) -> int | None:
    """Return how many queries of a plan were asked at once; None if sessions differ."""
    known = set(_concurrencies(recording, label).values())
    return known.pop() if len(known) == 1 else None


def mixed_concurrency(recording: Recording, label: str) -> str | None:
    """Return why a plan's latencies are no basis for a comparison, None if they are one."""
    known = _concurrencies(recording, label)
    if len(set(known.values())) < 2:  # noqa: PLR2004 - two that differ
        return None
    told = ", ".join(f"{at_once} in session {number}" for number, at_once in known.items())
    return coded(
        "latencies-mixed",
        f"latencies are of sessions that asked differently many queries at once ({told}):"
        " they do not compare with each other, nor with those of other runs",
    )


def damage_line(recording: Recording) -> str | None:
    """Return what to say of records that cannot be read, None if all of it has been said."""
    count = recording.damaged - recording.told_damage
    if count <= 0:
        return None
    pieces = "record is" if count == 1 else "records are"
    return coded(
        "records-damaged",
        f"run {recording.run_id}: {count} {pieces} damaged and left out, what they told is asked"
        " again; check the disk, unless a session was killed",
    )


def keeping_line(recording: Recording) -> str | None:
    """Return why a run is not kept as runs are, None if it is."""
    if recording.problem is None:
        return None
    told = f"run {recording.run_id}: {recording.problem}"
    if recording.is_temporary:
        told += "; it is in a temporary folder: choose another by --heta-runs-dir"
    return coded("run-not-kept", told)
