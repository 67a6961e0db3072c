"""Writes openrouter.jsonl, what models cost at OpenRouter, from the list in the crate genai-prices.

`./run catalogue` runs it after `generate.py`, whose list has no models of OpenRouter. The crate is
the one that Cargo.lock names. Abilities and longest answers are those of the models at their makers,
as models.jsonl says them; of other models nobody knows them.
"""

import decimal
import hashlib
import json
import pathlib
import re
import subprocess
import sys

DATE = "2026-11-25"
HERE = pathlib.Path(__file__).parent
# The list's names of what is priced apart, and ours.
AXES = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cached",
    "cache_write_mtok": "cacheWrite",
    "cache_write_1h_mtok": "cacheWriteLong",
    "output_reasoning_mtok": "reasoning",
}
# Priced by the piece, and no part of what a chat asks for.
OTHER = {"web_searches_kcount"}
# OpenRouter's names of makers, and ours of the vendors.
MAKERS = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "google": "gemini",
    "minimax": "minimax",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "perplexity": "perplexity",
    "qwen": "dashscope",
    "x-ai": "xai",
    "z-ai": "zai",
}
NO_CHAT = re.compile(r"audio|deep-research|embed|guard|image|lyria|rerank|tts|voxtral")


def main():
    crate = crate_of("genai-prices")
    raw = (pathlib.Path(crate["manifest_path"]).parent / "data" / "prices.json").read_bytes()
    providers = json.loads(raw, parse_float=decimal.Decimal)
    (listed,) = (provider["models"] for provider in providers if provider["id"] == "openrouter")
    known = known_models()
    rows = {}
    for model in listed:
        row = row_of(model, known)
        if row is not None:
            rows[row["id"]] = row
    header = {
        "source": "genai-prices, the price list in its crate",
        "url": "https://crates.io/crates/genai-prices",
        "version": crate["version"],
        "date": DATE,
        "licence": "MIT, Copyright (c) Pydantic Services Inc. 2025 to present",
        "sha256": hashlib.sha256(raw).hexdigest(),
        "unit": "micro-USD per million tokens",
    }
    lines = [header] + [rows[name] for name in sorted(rows)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (HERE / "openrouter.jsonl").write_text(text)
    print(f"{len(rows)} models of OpenRouter, {len(text)} bytes")


def crate_of(name):
    said = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version=1"], check=True, capture_output=True
    )
    found = [crate for crate in json.loads(said.stdout)["packages"] if crate["name"] == name]
    if len(found) != 1:
        sys.exit(f"Cargo.lock names {name} {len(found)} times")
    return found[0]


def known_models():
    """What models.jsonl and by_hand.jsonl say, by vendor and name."""
    lines = [line for name in ("by_hand", "models") for line in (HERE / f"{name}.jsonl").read_text().splitlines()]
    rows = (json.loads(line) for line in lines)
    return {(row["vendor"], row["id"]): row for row in rows if "vendor" in row}


def row_of(model, known):
    """None = no chat, or nothing is known that a person asks for."""
    prices = prices_of(price_now(model["prices"]))
    window = model.get("context_window")
    if NO_CHAT.search(model["id"]) or not (prices or window):
        return None
    row = {"vendor": "openrouter", "id": model["id"]}
    if model.get("name"):
        row["name"] = model["name"]
    if window:
        row["contextWindow"] = window
    maker = maker_of(model["id"], known)
    longest = maker.get("maxOutput")
    if longest and window:
        row["maxOutput"] = min(longest, window)
    # Without a maker's row nobody knows them, which is not the same as none.
    row["abilities"] = maker.get("abilities", []) if maker else None
    if prices:
        row["prices"] = prices
    return row


def maker_of(name, known):
    maker, _, own = name.partition("/")
    names = (own, own.replace(".", "-"))
    found = (known.get((MAKERS.get(maker), name)) for name in names)
    return next((row for row in found if row), {})


def price_now(prices):
    """The prices of the day, where they changed in the course of time."""
    if isinstance(prices, dict):
        return prices
    now = {}
    for entry in prices:
        constraint = entry.get("constraint") or {}
        if constraint.keys() - {"start_date"}:
            # They follow the clock.
            return {}
        if constraint.get("start_date", "") <= DATE:
            now = entry["prices"]
    return now


def prices_of(said):
    if said.keys() - AXES.keys() - OTHER:
        return []
    axes = {AXES[key]: price for key, price in said.items() if key in AXES}
    tiers = [tier["start"] for price in axes.values() if isinstance(price, dict) for tier in price["tiers"]]
    rows = [price_above(axes, above) for above in sorted({0, *tiers})]
    base = rows[0]
    # Nobody gives tokens away: what costs nothing is limited, or was not filled in.
    return rows if base.get("input") and base.get("output") else []


def price_above(axes, above):
    row = {"above": above} if above else {}
    for name in AXES.values():
        if name not in axes:
            continue
        price = axes[name]
        if isinstance(price, dict):
            begun = [tier for tier in price["tiers"] if tier["start"] <= above]
            price = max(begun, key=lambda tier: tier["start"])["price"] if begun else price["base"]
        row[name] = micro(price)
    return row


def micro(usd):
    whole = decimal.Decimal(usd) * 10**6
    return int(whole.to_integral_value(decimal.ROUND_HALF_UP))


main()
