import pytest

from tests.cli.command import parsed, sentence, shapelab


def test_cost_at_public_prices(no_load):
    bill = parsed(shapelab("cost", "1205x24", "--prices", "gpt-4.1", "--json").stdout)
    assert bill["usd_per_request"] == pytest.approx((1205 * 2 + 24 * 8) / 1e6)
    assert (bill["usd_per_million_input_tokens"], bill["usd_per_million_output_tokens"]) == (2, 8)
    assert bill["as_of"].startswith("2025") and bill["source"].startswith("https://")
    cached = parsed(shapelab("cost", "1000+205x24", "--prices", "gpt-4.1", "--json").stdout)
    assert cached["usd_per_request"] == pytest.approx((205 * 2 + 1000 * 0.5 + 24 * 8) / 1e6)
    text = shapelab("cost", "rag", "--prices", "gpt-4.1").stdout
    assert bill["as_of"] in text and "check them" in text


def test_cost_above_a_tier_shows_the_tiers_prices(no_load):
    bill = parsed(shapelab("cost", "300000x1000", "--prices", "gemini-2.5-pro", "--json").stdout)
    assert bill["usd_per_request"] == pytest.approx((300_000 * 2.5 + 1000 * 15) / 1e6)
    assert (bill["usd_per_million_input_tokens"], bill["usd_per_million_output_tokens"]) == (2.5, 15)


def test_cost_on_a_machine(no_load, plan_file):
    arguments = ("cost", "256x17@4", "--usd-per-hour", "0.35", "--run", plan_file)
    bill = parsed(shapelab(*arguments, "--json").stdout)
    total = parsed(shapelab("predict", plan_file, "256x17@4", "--json").stdout)[0]["total_s"]
    assert bill["usd_per_request"] == pytest.approx(total * 0.35 / 3600 / 4)
    assert bill["as_of"] == "2025-01-01" and bill["usd_per_million_output_tokens"] > bill["usd_per_million_input_tokens"]
    half = parsed(shapelab(*arguments, "--utilisation", "0.5", "--json").stdout)
    assert half["usd_per_request"] == pytest.approx(2 * bill["usd_per_request"])
    assert "predicted time" in shapelab(*arguments).stdout


@pytest.mark.parametrize(
    "arguments,option",
    [
        ([], "--prices"),
        (["--prices", "gpt-4.1", "--run", "x"], "--prices"),
        (["--run", "x"], "--usd-per-hour"),
        (["--usd-per-hour", "1"], "--run"),
        (["--prices", "nobody"], "--prices"),
        (["--prices", "list"], "gpt-4.1"),
        (["--usd-per-hour", "inf", "--run", "xeon-2cpu-smollm2-135m-float32"], "--usd-per-hour"),
        (["--usd-per-hour", "1", "--run", "xeon-2cpu-smollm2-135m-float32", "--utilisation", "2"], "--utilisation"),
    ],
)
def test_cost_refuses_with_a_sentence(no_load, arguments, option):
    line = sentence(shapelab("cost", "5x5", *arguments))
    assert option in line and "usd_per_hour" not in line
