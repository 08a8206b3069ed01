"""The ways to recalibrate, by name; apart from what they do, so that naming them costs no start-up time."""

from typing import Literal, get_args

Method = Literal["temperature", "temperature by type", "isotonic", "beta"]
METHODS: tuple[Method, ...] = get_args(Method)
Recalibrate = Literal["none", "temperature", "temperature by type", "isotonic", "beta"]
