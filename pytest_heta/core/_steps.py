"""Whose coroutine is running on an event loop, where it may run only for so long.

Between two waits a coroutine has the loop to itself. One that never waits
cannot be cancelled on the loop, but another thread can see that it has been
running for too long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from time import monotonic
from types import coroutine
from typing import Any, Final, NamedTuple

__all__ = ["GRACE_S", "Step", "noted", "overdue", "stepped"]

GRACE_S: Final = 1.0
"""Seconds that users' code gets to end, after its time is over."""


class Step(NamedTuple):
    """What runs between two waits.

    Attributes:
        began: When it began, by `time.monotonic`.
        limit_s: Seconds that the whole coroutine may take.
        who: Whose coroutine it is, for those who noted it.
    """

    began: float
    limit_s: float
    who: object


_STEPS: dict[int, Step] = {}  # by thread


@coroutine
def stepped(
    work: Coroutine[Any, Any, Any], begin: Callable[[], None], end: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Run a coroutine, and call two functions around all that it does between two waits.

    Args:
        work: The coroutine.
        begin: Called before each of its steps.
        end: Called after each, however it ends.
    """
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        begin()
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as stop:
            return stop.value
        finally:
            end()
        thrown = None
        try:
            sent = yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001 - passed on to the coroutine
            thrown = error


async def noted(work: Coroutine[Any, Any, Any], limit_s: float, who: object) -> Any:
    """Run a coroutine, and note meanwhile when its current step began."""
    thread = threading.get_ident()

    def begin() -> None:
        _STEPS[thread] = Step(monotonic(), limit_s, who)

    def end() -> None:
        del _STEPS[thread]

    return await stepped(work, begin, end)


def overdue(thread: threading.Thread | None) -> Step | None:
    """Return the step that a thread has been in for longer than its coroutine may take at all."""
    step = _STEPS.get(thread.ident) if thread is not None and thread.ident is not None else None
    if step is None or monotonic() - step.began <= step.limit_s + GRACE_S:
        return None
    return step
