"""How long a panel takes to follow a slider, in the kernel: from the new value to the new picture, text and table."""

import random
import statistics
import time

from shapelab.classroom.explorers import batch_explorer, cost_explorer, kv_explorer, request_explorer
from shapelab.measure.this_machine import environment

GOAL_MS, MOVES = 60, 80


def main():
    print(f"machine: {environment().device}")
    worst = 0.0
    for make in (request_explorer, batch_explorer, kv_explorer, cost_explorer):
        panel, rng, times = make(), random.Random(0), []
        sliders = [control for control in panel.controls.values() if type(control).__name__ == "SelectionSlider"]
        for move in range(MOVES + 10):
            slider = rng.choice(sliders)
            values = [value for _, value in slider.options if value != slider.value]
            start = time.perf_counter()
            slider.value = rng.choice(values)
            if move >= 10:  # the first ones load fonts
                times.append((time.perf_counter() - start) * 1e3)
        p95 = statistics.quantiles(times, n=20)[-1]
        worst = max(worst, p95)
        print(f"{make.__name__}: p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms over {MOVES} moves")
    print(f"panel_redraw: {worst:.1f} ms (goal <= {GOAL_MS} ms, the slowest panel's 95th percentile)")


if __name__ == "__main__":
    main()
