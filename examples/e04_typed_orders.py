"""Take typed payloads with a function: no class, no decoding, no loop.

Records of one customer (the partition key) come one after the other, those of different customers at the same time.
What is no order is passed over here, and the log says which record that was; see ``on_failure`` in the file beside.

kcl run examples/e04_typed_orders.yaml
"""

import msgspec

from kcl_py import Record, Retry, processor
from kcl_py.middlewares.metrics import Call, Metrics


class Order(msgspec.Struct):
    """What a producer puts, as JSON."""

    item: str
    count: int = 1


def show(call: Call) -> None:
    """Tell of each call; in earnest, count it in your own metrics."""
    print(f"{call.outcome} in less than {int(call.took_s) + 1} s", flush=True)


stock = {"apple": 2, "bean": 100}


@processor(middlewares=[Metrics(show)])
async def take_order(order: Order, record: Record) -> Retry | None:
    """Deliver what is in stock; what is not yet is asked for again, and only this customer waits."""
    if stock.get(order.item, 0) < order.count:
        stock[order.item] = 100  # it has arrived by then
        return Retry(after_s=0.2, reason=f"no {order.item} left")
    stock[order.item] -= order.count
    print(f"{order.count} {order.item} for {record.partition_key}", flush=True)
    return None
