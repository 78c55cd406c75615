"""What a GPU took, by NVML."""
import ctypes
import os
import threading
import time


class Energy:
    """Joules that the GPU that runs use has taken, sampled by NVML beside them; none without NVML."""

    INTERVAL_S = 0.1  # rarely enough that what runs does not notice

    def __init__(self):
        self.samples = []  # (monotonic seconds, joules)
        self.ends = threading.Event()
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
            self.device = ctypes.c_void_p()
            works = self.nvml.nvmlInit_v2() == 0 and self.finds_device()
        except OSError:
            works = False
        self.thread = threading.Thread(target=self.sample, daemon=True)
        if works:
            self.thread.start()

    def finds_device(self):
        """The first that CUDA_VISIBLE_DEVICES names: an index, taken for NVML's, which counts along the
        bus, or a UUID."""
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        if first.isdecimal():
            return self.nvml.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(self.device)) == 0
        return first.startswith(("GPU-", "MIG-")) and self.nvml.nvmlDeviceGetHandleByUUID(
            first.encode(), ctypes.byref(self.device)) == 0

    def sample(self):
        millijoules = ctypes.c_ulonglong()
        while not self.ends.wait(self.INTERVAL_S):
            if self.nvml.nvmlDeviceGetTotalEnergyConsumption(
                    self.device, ctypes.byref(millijoules)) == 0:
                self.samples.append((time.monotonic(), millijoules.value / 1e3))

    def stop(self):
        self.ends.set()
        if self.thread.is_alive():
            self.thread.join()

    def joules_between(self, start_s, end_s):
        return joules_between(self.samples, start_s, end_s)


def joules_between(samples, start_s, end_s):
    """Between two times, linear between the samples around each; None where they do not reach."""
    def at(time_s):
        for (t0, j0), (t1, j1) in zip(samples, samples[1:]):
            if t0 <= time_s <= t1:
                return j0 + (j1 - j0) * (time_s - t0) / max(t1 - t0, 1e-9)
        return None
    start, end = at(start_s), at(end_s)
    return None if start is None or end is None else end - start
