"""Every text of the app has a Chinese one, every plural an English one: none is missing, unfinished, empty, or without its placeholders.
No English word is left in a Chinese text but names: of programs, formats, units and options.

    translations_test.py ROOT

Exits 1 with the texts, 77 where Qt's tools are missing."""
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path


# Names that are the same in every language. A new one is added here once somebody has looked at it.
NAMES = set("""
    Ferry ferry GPU CPU NVIDIA CUDA Turing ZeRO NVMe SSD PCIe BIOS WSL Windows memlock Linux GNU Apache Python LibTorch QCustomPlot TensorBoard Chrome chrome tracing Perfetto
    Hugging Face Hub GGUF llama Ollama LM Studio BBC News BERT BEiT BMTrain ULMFiT Transformer transformers Trainer PEFT OpenPrompt TRL DPO cDPO LoRA DoRA OpenDelta Houlsby Compacter cgroup Adam AdamW Lion SGD Nesterov beta epsilon Top-k Top-p top-k top-p F1
    CSV TSV JSON TOML PNG SVG UTF Latin Arrow Parquet safetensors ORGANISATION NAME CONFIG SPLIT REVISION FERRY TBW
    B M G TB TiB GiB MiB KiB GB MB KB Wh W h min ms s Esc
    """.split())
# What users type or what stands in files: only in sentences, where the option table does not have it.
TYPED = set("""
    predict eval generate chat serve plan export doctor prompt instruction input factor decay pattern accuracy pearson comma semicolon tab pipe space
    torch ssh B-PER I-PER checkpoint-N
    alpaca chatml vicuna zephyr jinja http https localhost PORT KEY Authorization Bearer my site CORS JSON TCP placeholder mask
    """.split())


def option_words(root):
    """Keys, other names, choices and verbs of the option table, as users type them."""
    text = "".join(file.read_text() for file in sorted((root / "src/config/options").glob("*.cpp")))
    return set(re.findall(r'"([a-z][a-z0-9_-]*)"', text))


def english_words(source, text, options):
    """English words of a Chinese text. Sentences may name options; labels, units and headings say them in Chinese."""
    is_sentence = bool(re.search(r"[.:;]", source))
    # Not words: places, letters of Alt, HTML, files and patterns, what is quoted or assigned.
    for part in (r"%L?\d+|%n", r"\w+\.(?:jsonl?|toml)\b", r"\(&\w\)", r"<[^>]*>", r"\*?\.\w+", r"(?:[\w.$*-]+/)+(?![A-Za-z])", r"\$\w+(?:/\w+)*",
                 r"'[^']*'", r"\S*\w[=*]\S*", r"\\[a-z]"):
        text = re.sub(part, " ", text)
    words = re.findall(r"(?<![\w-])[A-Za-z][A-Za-z_-]*[A-Za-z](?![\w-])", re.sub(r"(?<=[A-Za-z])/(?=[A-Za-z])", " ", text))
    return [word for word in words
            if word not in NAMES and "_" not in word and not (is_sentence and (word in options or word in TYPED))]


def places(text):
    """The placeholders of a text, in any order."""
    return sorted(re.findall(r"%L?\d+|%n", text))


def main():
    root = Path(sys.argv[1])
    if not (Path("/usr/lib/qt6/bin/lupdate").exists() or shutil.which("lupdate")):
        print("skipped: lupdate is missing (qt6-l10n-tools)")
        sys.exit(77)
    faults = []
    options = option_words(root)
    assert english_words("share of dataset", "占 dataset 的比例", options) == ["dataset"]
    assert english_words("Data, as dataset.", "数据，格式与 dataset 相同。", options) == []
    with tempfile.TemporaryDirectory() as directory:
        for kept in (root / "gui/translations").glob("*.ts"):
            shutil.copy(kept, directory)
        subprocess.run([root / "scripts/renew_translations", directory], check=True)
        for renewed in Path(directory).glob("*.ts"):
            for context in ElementTree.parse(renewed).getroot().iter("context"):
                name = f"{renewed.name}: {context.findtext('name')}"
                if context.findtext("name") == "ferry::gui":  # tr() of no class: nobody looks these up
                    faults += [f"{name}: {message.findtext('source')}" for message in context.iter("message")]
                for message in context.iter("message"):
                    source, translation = message.findtext("source"), message.find("translation")
                    forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
                    if translation.get("type") or not all(forms):
                        faults.append(f"{name}: not translated: {source}")
                    elif any(places(form) != places(source) for form in forms):
                        faults.append(f"{name}: other placeholders: {source}")
                    elif "_zh_" in renewed.name:
                        faults += [f"{name}: English word '{word}' in: {form}" for form in forms
                                   for word in english_words(source, form, options)]
    print("\n".join(faults) or "every text is translated, without English words but names")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
