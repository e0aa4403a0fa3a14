"""shapelab doctor: is this machine ready, and for what?"""

from shapelab.cli import options
from shapelab.cli.output import console, print_json, print_table, say


def doctor(json: options.Json = False):
    """What this machine is, what is missing, which model it would take and why, and what it can do at best."""
    from shapelab.classroom.tables import facts
    from shapelab.measure.doctor import examine

    with console(stderr=True).status("Measuring what this machine can do at best"):
        report = examine()
    if json:
        print_json(report)
        return
    for title in ("environment", "ceilings", "choice"):
        say(title.capitalize(), style="bold")
        print_table(facts(report[title]))
    for problem in report["problems"]:
        say(f"Problem: {problem}", style="yellow")
    if not report["problems"]:
        say("Nothing is missing: this machine is ready.", style="green")
