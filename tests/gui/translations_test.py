"""Every text of the app has a Chinese one, every plural an English one: none is missing, unfinished, empty, or without its placeholders.

    translations_test.py ROOT

Exits 1 with the texts, 77 where Qt's tools are missing."""
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def places(text):
    """The placeholders of a text, in any order."""
    return sorted(re.findall(r"%L?\d+|%n", text))


def main():
    root = Path(sys.argv[1])
    if not (Path("/usr/lib/qt6/bin/lupdate").exists() or shutil.which("lupdate")):
        print("skipped: lupdate is missing (qt6-l10n-tools)")
        sys.exit(77)
    faults = []
    with tempfile.TemporaryDirectory() as directory:
        for kept in (root / "gui/translations").glob("*.ts"):
            shutil.copy(kept, directory)
        subprocess.run([root / "scripts/renew_translations", directory], check=True)
        for renewed in Path(directory).glob("*.ts"):
            for context in ElementTree.parse(renewed).getroot().iter("context"):
                name = f"{renewed.name}: {context.findtext('name')}"
                for message in context.iter("message"):
                    source, translation = message.findtext("source"), message.find("translation")
                    forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
                    if translation.get("type") or not all(forms):
                        faults.append(f"{name}: not translated: {source}")
                    elif any(places(form) != places(source) for form in forms):
                        faults.append(f"{name}: other placeholders: {source}")
    print("\n".join(faults) or "every text is translated")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
