"""Tags of streams and consumers: kept and shown, of no effect."""

from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.errors import invalid
from kcl_py.local.operations import Answer, Operations

MOST_TAGS = 50
"""Of one stream or consumer. Source: Kinesis API reference, AddTagsToStream."""


class Tags:
    """The operations on tags within ``account``."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def operations(self) -> Operations:
        return {
            ask.AddTagsToStream: self.add_tags_to_stream,
            ask.ListTagsForResource: self.list_tags_for_resource,
            ask.ListTagsForStream: self.list_tags_for_stream,
            ask.RemoveTagsFromStream: self.remove_tags_from_stream,
            ask.TagResource: self.tag_resource,
            ask.UntagResource: self.untag_resource,
        }

    def add_tags_to_stream(self, request: ask.AddTagsToStream) -> Answer:
        return _add(self._account.stream(request).tags, request.tags)

    def remove_tags_from_stream(self, request: ask.RemoveTagsFromStream) -> Answer:
        return _remove(self._account.stream(request).tags, request.tag_keys)

    def list_tags_for_stream(self, request: ask.ListTagsForStream) -> Answer:
        tags, after = self._account.stream(request).tags, request.exclusive_start_tag_key or ""
        rest = [key for key in sorted(tags) if key > after]
        page = {key: tags[key] for key in rest[: request.limit]}
        return {"Tags": _listed(page), "HasMoreTags": len(page) < len(rest)}

    def tag_resource(self, request: ask.TagResource) -> Answer:
        return _add(self._of(request), request.tags)

    def untag_resource(self, request: ask.UntagResource) -> Answer:
        return _remove(self._of(request), request.tag_keys)

    def list_tags_for_resource(self, request: ask.ListTagsForResource) -> Answer:
        return {"Tags": _listed(self._of(request))}

    def _of(self, request: ask.ResourceRequest) -> dict[str, str]:
        arn = request.resource_arn
        return self._account.consumer(arn)[1].tags if "/consumer/" in arn else self._account.by_arn(arn).tags


def _add(tags: dict[str, str], more: dict[str, str]) -> Answer:
    if len(tags | more) > MOST_TAGS:
        raise invalid(f"Failed to add tags: there may be {MOST_TAGS}, with these there would be {len(tags | more)}.")
    tags |= more
    return {}


def _remove(tags: dict[str, str], keys: list[str]) -> Answer:
    for key in keys:
        tags.pop(key, None)
    return {}


def _listed(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
