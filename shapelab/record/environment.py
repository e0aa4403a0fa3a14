"""What a record says about where it was measured: this machine, or a server elsewhere, and the GPU's sensors."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from shapelab.record.fields import Count, Finite, Moment, NotNegative, Strict, Text
from shapelab.theory.model_spec import ModelSpec


class GpuState(Strict):
    """A GPU's sensors at one moment; None where it has no such sensor."""

    sm_clock_mhz: NotNegative | None = None
    temperature_c: Finite | None = None
    power_w: NotNegative | None = None
    energy_j: NotNegative | None = None


class _Place(Strict):
    """What a machine and a server have in common.

    weights        "original", "dequantised from 4-bit" or "random"; None where it is unknown
    weight_dtype   the numbers a pass reads from memory, such as int8
    compute_dtype  the numbers it multiplies, and keeps in the KV cache, such as float16
    spec           the model's architecture; None where it is unknown
    shapelab       the version that measured
    """

    model: Text | None = None
    weights: Text | None = None
    weight_dtype: Text | None = None
    compute_dtype: Text | None = None
    spec: ModelSpec | None = None
    shapelab: Text
    measured_at: Moment

    @property
    def dtype_label(self) -> str | None:
        """One word where weights and arithmetic have the same dtype, both otherwise."""
        if self.weight_dtype == self.compute_dtype:
            return self.weight_dtype
        return f"{self.weight_dtype or 'unknown'} weights, {self.compute_dtype or 'unknown'} arithmetic"

    @property
    def model_label(self) -> str:
        """The model, and what kind its weights are where they are not the original ones."""
        return f"{self.model}" if self.weights in (None, "original") else f"{self.model} ({self.weights} weights)"

    @property
    def label(self) -> str:
        """One line for captions: model, dtype where it is known, machine or server."""
        return ", ".join(filter(None, (self.model_label, self.dtype_label, self.device)))


class LocalMachine(_Place):
    """The machine in front of you, the model loaded there, and the versions that ran it."""

    kind: Literal["local"] = "local"
    device: Text
    device_kind: Literal["cpu", "cuda", "mps"]
    attention: Text | None = None
    threads: Count
    cpus_usable: NotNegative | None = None
    compute_capability: Text | None = None
    cuda: Text | None = None
    torch: Text
    transformers: Text
    python: Text
    system: Text

    @property
    def versions(self) -> str:
        """One line: what a rerun should install."""
        return f"torch {self.torch}, transformers {self.transformers}, Python {self.python}, shapelab {self.shapelab}, {self.threads} threads"


def _host_only(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a server's address starts with http:// or https:// and names a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


class Server(_Place):
    """A server that answers over the network: what it says of itself. Nobody here knows its threads or its torch.

    url       scheme, host and port; a user, a password, a path and a query are dropped, for they may be secrets
    software  the server's program and version, where it gives them
    """

    kind: Literal["server"] = "server"
    url: Annotated[Text, AfterValidator(_host_only)]
    software: Text | None = None
    model: Text

    @property
    def device(self) -> str:
        """Where the model ran, as far as anyone here can say."""
        return self.url

    @property
    def versions(self) -> str:
        """One line: what a rerun should install."""
        return f"{self.software or 'a server of unknown software'}, measured with shapelab {self.shapelab}"


def _from_before_servers(raw: Any) -> Any:
    """Files of schema 1 knew one kind of place, this machine, and one dtype for weights and arithmetic."""
    if not isinstance(raw, dict) or "kind" in raw or "url" in raw:
        return raw
    now = {"kind": "local", **raw}
    if "dtype" in now:
        now["weight_dtype"] = now["compute_dtype"] = now.pop("dtype")
    return now


Environment = Annotated[LocalMachine | Server, Field(discriminator="kind"), BeforeValidator(_from_before_servers)]
