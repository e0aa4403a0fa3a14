"""What watching costs: the same request in a lane of the race, and alone in the loop, in turns."""

import statistics

import shapelab
from shapelab.classroom.race import Lane, Race, run_lane
from shapelab.measure.experiment import run_once
from shapelab.record import metrics
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape

GOAL_PERCENT, PAIRS, SHAPE = 2, 7, RequestShape(25, 100)


def main():
    lab = shapelab.load()
    print(f"machine: {lab.label}; {SHAPE}, {PAIRS} pairs in turns")
    watched, alone = [], []
    for pair in range(PAIRS + 1):
        lane = Lane("lane", SHAPE)
        standing = Race([lane], lab.label)
        run_lane(lab, lane, pair, standing._repr_html_)  # all but the sending to the page
        seconds = metrics.total_s(run_once(lab, SHAPE, prompt_ids(lab.tokenizer, SHAPE, seed=pair, repeat=1)).timeline)
        if pair:  # the first pair warms up
            watched.append(lane.total_s)
            alone.append(seconds)
    ratios = [a / b for a, b in zip(watched, alone, strict=True)]
    print(
        f"watched {statistics.median(watched):.3f} s, alone {statistics.median(alone):.3f} s (medians); pairs differ by {min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}"
    )
    print(f"race_overhead: {(statistics.median(ratios) - 1) * 100:.2f} % (goal <= {GOAL_PERCENT} %)")


if __name__ == "__main__":
    main()
