"""A job in its own thread: status, waiting and termination are the same on every engine."""

from __future__ import annotations

import logging
import threading
import time

from emberflow.engines.job.progress import ProgressLine
from emberflow.engines.job.sink_ownership import finish_sinks
from emberflow.errors import EmberflowError, InvalidArgument, shorten
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig, JobMetrics, JobStatus

_log = logging.getLogger("emberflow")

CANCEL_TIMEOUT = "cancel_timeout_ms"
DEFAULT_CANCEL_TIMEOUT_MS = 30_000
_ASK_AGAIN_S = 0.5


class JobThread:
    """Base class of the engines' job handles. `work` runs on the thread; `launch` starts it once the handle is complete."""

    def __init__(self, graph: JobGraph, job_id: str, config: JobConfig) -> None:
        self.graph = graph
        self.job_id = job_id
        self.metrics = JobMetrics()
        self.config = config
        self.canceled = threading.Event()
        self.abandoned = threading.Event()
        """Canceled, but not ended in time. The job is over for everyone else; it must not commit anything."""
        self.can_continue = config.checkpoint_dir is not None
        """Whether another start, or a job that begins from a savepoint, may continue where this one ended."""
        self.grace_s = 0.0
        """How long a canceled job may take for a final checkpoint."""
        self.grace_ends_s = 0.0
        self._ending = threading.Lock()
        self._cancel_timeout_s = cancel_timeout_ms(config) / 1000
        self._status = JobStatus.CREATED
        self._error: EmberflowError | None = None
        self._ended = threading.Event()
        self._progress = ProgressLine(graph.name, lambda: self.metrics, quiet=config.quiet)
        self.thread = threading.Thread(target=self._run, daemon=True, name=f"emberflow-job-{job_id}")

    def launch(self) -> None:
        self.thread.start()

    def status(self) -> JobStatus:
        return self._status

    def wait(self, timeout_s: float | None = None) -> bool:
        """True when the job has ended; raises the job's failure."""
        if not self._ended.wait(timeout_s):
            return False
        if not self.abandoned.is_set():
            self.thread.join()
        if self._error is not None:
            raise self._error
        return True

    def cancel(self, timeout_s: float | None = None) -> None:
        """Returns when the job has ended. If user code does not return within the timeout (the option
        `cancel_timeout_ms`), the thread is abandoned with a warning; the status is CANCELED then too."""
        limit_s = self._cancel_timeout_s if timeout_s is None else timeout_s
        self.grace_s = limit_s / 2
        self.grace_ends_s = time.monotonic() + self.grace_s
        self.canceled.set()
        deadline_s = time.monotonic() + limit_s
        while self.thread.is_alive() and not self.abandoned.is_set():
            self.ask_to_stop()
            rest_s = deadline_s - time.monotonic()
            if rest_s <= 0:
                self._abandon(limit_s)
                return
            self.thread.join(min(rest_s, _ASK_AGAIN_S))

    def _abandon(self, limit_s: float) -> None:
        with self._ending:
            if self._ended.is_set():
                return
            self.abandoned.set()
            self._status = JobStatus.CANCELED
            self._ended.set()
        self._progress.stop()
        _log.warning(
            "the canceled job did not stop within %g s and is abandoned: %s; what it processed since its last "
            "checkpoint is not committed, and the code may continue until this process ends",
            limit_s, self.where_it_hangs(),
        )  # fmt: skip

    # implemented by engines

    def ask_to_stop(self) -> None:
        """Called by `cancel` repeatedly until the job's thread has ended."""

    def where_it_hangs(self) -> str:
        """What prevents the job's thread from ending, for a warning."""
        return "the underlying engine does not stop it"

    def work(self) -> JobStatus:
        """Runs the job; returns FINISHED or CANCELED."""
        raise NotImplementedError(type(self).__name__)

    def explain_failure(self, error: BaseException) -> EmberflowError:
        """The error shown to the user."""
        raise NotImplementedError(type(self).__name__)

    def restarting(self, error: BaseException, delay_ms: int) -> None:
        """The job has failed and is about to be restarted from its latest checkpoint."""
        self.metrics.restarts += 1
        _log.warning("the job restarts in %d ms after: %s", delay_ms, self.explain_failure(error))

    def clean_up(self) -> None:
        """Removes what the job leaves behind on this machine."""

    def _run(self) -> None:
        started = time.monotonic()
        self._status, final = JobStatus.RUNNING, JobStatus.FAILED
        try:
            final = self.work()
            if not (self.can_continue or self.abandoned.is_set()):
                finish_sinks(self.graph, self.job_id)
        except BaseException as error:
            self._error = self.explain_failure(error)
        finally:
            self.metrics.duration_ms = int((time.monotonic() - started) * 1000)
            self._progress.stop()
            try:
                self.clean_up()
            finally:
                with self._ending:
                    if not self.abandoned.is_set():
                        self._status = final
                    self._ended.set()


def cancel_timeout_ms(config: JobConfig) -> int:
    value = config.options.get(CANCEL_TIMEOUT, DEFAULT_CANCEL_TIMEOUT_MS)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgument(
            f"the option {CANCEL_TIMEOUT!r} cannot be {shorten(value)}",
            way_out="give whole milliseconds of 0 or more",
        )
    return value
