"""What people write by hand: one object after the other, as it comes. plain.py URL KEYS, into the working folder."""

import os
import sys

import requests

url, keys = sys.argv[1:]
with open(keys, encoding="utf-8") as lines:
    for key in lines.read().split():
        os.makedirs(os.path.dirname(key), exist_ok=True)
        answer = requests.get(f"{url}/{key}", timeout=60)
        answer.raise_for_status()
        with open(key, "wb") as file:
            file.write(answer.content)
