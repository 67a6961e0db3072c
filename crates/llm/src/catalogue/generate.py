"""Writes models.jsonl, what is known of models, from the price list in LiteLLM's Python package.

`./run catalogue` runs it. Version and hash are pinned below: another table is refused, unless
`--new-hash` says that it was looked at. `--table FILE` reads a table that is there already, and
`--version VERSION` takes another release of the package.
"""

import argparse
import decimal
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

VERSION = "1.110.2"
DATE = "2026-11-25"
SHA256 = "8943af58bf9f979c6a4bef815687117ffa341e462a41faed9be17b5c33d3dcc2"
MEMBER = "litellm/model_prices_and_context_window_backup.json"
HERE = pathlib.Path(__file__).parent

# The package's names of providers, and ours; the others are not taken.
VENDORS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "azure": "azure",
    "azure_ai": "azure",
    "bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock",
    "cerebras": "cerebras",
    "cohere_chat": "cohere",
    "dashscope": "dashscope",
    "deepinfra": "deepinfra",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "codestral": "mistral",
    "moonshot": "moonshot",
    "nebius": "nebius",
    "perplexity": "perplexity",
    "sambanova": "sambanova",
    "together_ai": "together",
    "xai": "xai",
    "zai": "zai",
}
ABILITIES = [
    ("supports_function_calling", "tools"),
    ("supports_vision", "images"),
    ("supports_pdf_input", "pdf"),
    ("supports_reasoning", "reasoning"),
]
# What the table prices apart, by our names.
AXES = [
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
    ("cache_read_input_token_cost", "cached"),
    ("cache_creation_input_token_cost", "cacheWrite"),
    ("cache_creation_input_token_cost_above_1hr", "cacheWriteLong"),
    ("cache_creation_input_token_cost_above_12hr", "cacheWriteLong"),
    ("output_cost_per_reasoning_token", "reasoning"),
]
TIERS = {"flex": "flex", "priority": "priority", "batches": "batch"}
# Costs beside tokens that no request may be priced without, and prices that follow the clock.
OTHER_COSTS = ["input_cost_per_request", "citation_cost_per_token", "off_peak_pricing"]
# OpenAI says how long a request may be, and the window is that and the longest answer.
SUMS = {400_000, 1_050_000}
NO_CHAT = re.compile(r"audio|computer-use|container|deep-research|image|live|lyria|robotics|tts|voxtral|guard")
REGION = re.compile(r"^(?:bedrock(?:_mantle)?/|azure(?:_ai)?/)?(?:[a-z]+-[a-z]+(?:-[a-z]+)?-\d|eu|us|global|global-standard)/")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--table", type=pathlib.Path)
    arguments.add_argument("--version", default=VERSION)
    arguments.add_argument("--new-hash", action="store_true")
    said = arguments.parse_args()
    raw = said.table.read_bytes() if said.table else download(said.version)
    digest = hashlib.sha256(raw).hexdigest()
    if digest != SHA256 and not said.new_hash:
        sys.exit(f"the table has the hash {digest}, not {SHA256}; look at it, then say --new-hash")
    table = json.loads(raw, parse_float=decimal.Decimal)
    models = collect(table)
    header = {
        "source": "LiteLLM, the price list in its Python package",
        "url": "https://pypi.org/project/litellm/",
        "version": said.version,
        "date": DATE,
        "licence": "MIT, Copyright (c) 2023 Berri AI",
        "sha256": digest,
        "unit": "micro-USD per million tokens",
    }
    lines = [header] + [models[key] for key in sorted(models)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (HERE / "models.jsonl").write_text(text)
    print(f"{len(models)} models, {len(text)} bytes")


def download(version):
    with tempfile.TemporaryDirectory() as folder:
        # Every platform's package holds the same table.
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
             "--platform=manylinux_2_28_x86_64", "--dest", folder, f"litellm=={version}"],
            check=True,
        )  # fmt: skip
        (package,) = pathlib.Path(folder).glob("*.whl")
        return zipfile.ZipFile(package).read(MEMBER)


def collect(table):
    models, regional = {}, {}
    for name, entry in table.items():
        vendor = vendor_of(entry)
        if vendor is None or entry.get("mode") not in ("chat", "responses") or NO_CHAT.search(name):
            continue
        if "text" not in entry.get("supported_output_modalities", ["text"]) or name.startswith("ft:"):
            continue
        if re.match(r"together-ai-", name):
            continue
        model = row(vendor, own_name(name), entry)
        key = (vendor, model["id"])
        if REGION.match(name):
            regional.setdefault(key, []).append(model.get("prices"))
        elif key not in models:
            models[key] = model
    for key, prices in regional.items():
        model = models.get(key)
        # The region is no part of the model's name: where it matters, the price is not known.
        if model is not None and any(price != model.get("prices") for price in prices):
            model["isRegional"] = True
    return without_versions(models)


def vendor_of(entry):
    provider = entry.get("litellm_provider", "")
    return "vertex" if provider.startswith("vertex_ai") else VENDORS.get(provider)


def own_name(name):
    """What the vendor calls the model: without the package's prefixes."""
    name = REGION.sub("", name)
    prefixes = [*VENDORS, "vertex_ai", "cohere", "fireworks_ai"]
    for prefix in prefixes:
        if name.startswith(prefix + "/"):
            return name[len(prefix) + 1 :]
    return name


def row(vendor, name, entry):
    window, output = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    window, output = (int(it) if it else None for it in (window, output))
    model = {"vendor": vendor, "id": name}
    if title(name):
        model["name"] = title(name)
    if vendor in ("openai", "azure") and window and output and window + output in SUMS:
        model["contextWindow"], model["maxInput"] = window + output, window
    elif window:
        model["contextWindow"] = window
    if output:
        model["maxOutput"] = min(output, model.get("contextWindow", output))
    abilities = [word for key, word in ABILITIES if entry.get(key)]
    if abilities:
        model["abilities"] = abilities
    refuses = []
    if entry.get("supports_sampling_params") is False:
        refuses.append("temperature")
    if entry.get("supports_forced_tool_use") is False:
        refuses.append("forced_tool_choice")
    if entry.get("thinking_always_on"):
        refuses.append("no_thinking")
    if refuses:
        model["refuses"] = refuses
    date = entry.get("deprecation_date")
    if date and re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        model["retires"] = date
    if entry.get("successor_model"):
        model["successor"] = own_name(entry["successor_model"])
    if any(key.startswith("regional_") for key in entry):
        model["isRegional"] = True
    prices = prices_of(entry)
    if prices:
        model["prices"] = prices
    return model


def title(name):
    """A name for people, where the vendor's names follow a rule."""
    name = re.sub(r"-\d{8}$|-\d{4}-\d\d-\d\d$", "", name)
    version = r"(\d+)(?:[-.](\d+))?"
    words = lambda text: text.replace("-", " ").title()
    if found := re.fullmatch(rf"claude-([a-z]+)-{version}", name):
        kind, major, minor = found.groups()
        return f"Claude {kind.title()} {major}" + (f".{minor}" if minor else "")
    if found := re.fullmatch(r"gpt-(\d[\w.]*)((?:-[a-z]+)*)", name):
        rest = words(found.group(2).strip("-"))
        return f"GPT-{found.group(1)}" + (f" {rest}" if rest else "")
    if found := re.fullmatch(r"gemini-([\d.]+)((?:-[a-z]+)*)", name):
        rest = words(found.group(2).strip("-")).replace("Flash Lite", "Flash-Lite")
        return f"Gemini {found.group(1)}" + (f" {rest}" if rest else "")
    return None


def prices_of(entry):
    if any(key in entry for key in OTHER_COSTS):
        return []
    rows = {}
    for key, value in entry.items():
        if place := axis_of(key):
            axis, tier, above = place
            rows.setdefault((tier, above), {})[axis] = micro(value)
    for tiered in entry.get("tiered_pricing") or []:
        row = rows.setdefault(("", int(tiered["range"][0])), {})
        row |= {axis: micro(tiered[key]) for key, axis in AXES if key in tiered}
    base = rows.get(("", 0), {})
    # Nobody gives tokens away: an entry of zeros is one that nobody filled in.
    if not base.get("input") and not base.get("output"):
        return []
    order = ["", *TIERS.values()]
    return [
        price(tier, above, rows[tier, above])
        for tier, above in sorted(rows, key=lambda key: (order.index(key[0]), key[1]))
        if {"input", "output"} <= rows[tier, above].keys()
    ]


def axis_of(key):
    """Axis, tier and threshold of a key of the table."""
    for name, axis in sorted(AXES, key=lambda axis: -len(axis[0])):
        found = re.fullmatch(rf"{name}(?:_above_(\d+)k_tokens)?(?:_({'|'.join(TIERS)}))?", key)
        if found:
            return axis, TIERS.get(found.group(2), ""), int(found.group(1) or 0) * 1000
    return None


def micro(usd):
    whole = decimal.Decimal(usd) * 10**12
    if whole != whole.to_integral_value():
        raise ValueError(f"{usd} is no whole number of micro-USD per million")
    return int(whole)


def price(tier, above, axes):
    if axes.get("reasoning") == axes["output"]:
        del axes["reasoning"]
    said = {"tier": tier} if tier else {}
    if above:
        said["above"] = above
    names = dict.fromkeys(axis for _, axis in AXES)
    return said | {axis: axes[axis] for axis in names if axis in axes}


def without_versions(models):
    """Leaves out dated versions that say what their model says."""
    said = lambda model: {key: it for key, it in model.items() if key != "id"}
    kept = {}
    for (vendor, name), model in models.items():
        base = re.sub(r"-(?:\d{8}|\d{4}-\d\d-\d\d|latest)$", "", name)
        known = models.get((vendor, base))
        if base == name or known is None or said(known) != said(model):
            kept[vendor, name] = model
    return kept


main()
