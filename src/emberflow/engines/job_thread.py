"""A job in a thread of its own: status, waiting and the end are the same on every engine."""

from __future__ import annotations

import logging
import threading
import time

from emberflow.engines.progress import ProgressLine
from emberflow.errors import EmberflowError
from emberflow.plan.job import JobConfig, JobMetrics, JobStatus

_log = logging.getLogger("emberflow")


class JobThread:
    """Base of the engines' job handles. `work` runs on the thread; `launch` starts it once the handle is complete."""

    def __init__(self, name: str, job_id: str, config: JobConfig) -> None:
        self.job_id = job_id
        self.metrics = JobMetrics()
        self.config = config
        self.canceled = threading.Event()
        self._status = JobStatus.CREATED
        self._error: EmberflowError | None = None
        self._ended = threading.Event()
        self._progress = ProgressLine(name, lambda: self.metrics, quiet=config.quiet)
        self.thread = threading.Thread(target=self._run, daemon=True, name=f"emberflow-job-{job_id}")

    def launch(self) -> None:
        self.thread.start()

    def status(self) -> JobStatus:
        return self._status

    def wait(self, timeout_s: float | None = None) -> bool:
        """True when the job has ended; raises what made it fail."""
        if not self._ended.wait(timeout_s):
            return False
        self.thread.join()
        if self._error is not None:
            raise self._error
        return True

    # what an engine fills in

    def work(self) -> JobStatus:
        """Runs the job; returns FINISHED or CANCELED."""
        raise NotImplementedError(type(self).__name__)

    def explain_failure(self, error: BaseException) -> EmberflowError:
        """The error a user sees."""
        raise NotImplementedError(type(self).__name__)

    def restarting(self, error: BaseException, delay_ms: int) -> None:
        """The job has failed and runs again from its latest checkpoint."""
        self.metrics.restarts += 1
        _log.warning("the job runs again in %d ms after: %s", delay_ms, self.explain_failure(error))

    def clean_up(self) -> None:
        """Removes what the job leaves behind on this machine."""

    def _run(self) -> None:
        started = time.monotonic()
        self._status, final = JobStatus.RUNNING, JobStatus.FAILED
        try:
            final = self.work()
        except BaseException as error:
            self._error = self.explain_failure(error)
        finally:
            self.metrics.duration_ms = int((time.monotonic() - started) * 1000)
            self._progress.stop()
            try:
                self.clean_up()
            finally:
                self._status = final
                self._ended.set()
