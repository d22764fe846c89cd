"""The operations on tables: create, describe, change, delete, and their settings. Sentences as AWS answers them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kcl_py.local.dynamo.capacity import Capacity
from kcl_py.local.dynamo.catalog import Catalog
from kcl_py.local.dynamo.errors import Refusal, invalid, invalid_value, no_table
from kcl_py.local.dynamo.index import Index, Projection
from kcl_py.local.dynamo.keys import KeySchema
from kcl_py.local.dynamo.table import Table, key_schema
from kcl_py.local.stream import ACCOUNT

Answer: TypeAlias = dict[str, Any]
Request: TypeAlias = Mapping[str, Any]

MOST_INDEXES = 20
"""Source: quotas of DynamoDB's developer guide."""
_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_TABLES_PAGE = 100
_NOT_THERE = {
    "LocalSecondaryIndexes": "local secondary indexes",
    "ReplicaUpdates": "replicas",
    "ResourcePolicy": "resource policies",
    "StreamSpecification": "streams",
}
"""What a table cannot have, by the parameter that asks for it."""


class Admin:
    """Operations that are about tables, not items."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._behaviour = catalog, catalog.behaviour

    def create_table(self, request: Request) -> Answer:
        name = request["TableName"]
        if not _NAME.fullmatch(name):
            raise invalid(
                "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may "
                "contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'"
            )
        _check_wishes(request)
        kinds = {one["AttributeName"]: one["AttributeType"] for one in request["AttributeDefinitions"]}
        indexes = request.get("GlobalSecondaryIndexes") or []
        _check_keys([request, *indexes], kinds)
        if len(indexes) > MOST_INDEXES:
            raise invalid_value("GlobalSecondaryIndex count exceeds the per-table limit of 20")
        mode = request.get("BillingMode") or "PROVISIONED"
        capacity = self._capacity(mode, request)
        made = [self._index(one, kinds, KeySchema.read(request["KeySchema"], kinds), mode) for one in indexes]
        table = self._catalog.create(name, KeySchema.read(request["KeySchema"], kinds), capacity)
        table.kinds = kinds
        for index in made:
            table.add_index(index)
        self._set(table, request)
        table.settings.tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []}
        self._catalog.note(table)
        return {"TableDescription": self._described(table)}

    def _capacity(self, mode: str, request: Request) -> Capacity:
        units = request.get("ProvisionedThroughput")
        if mode == "PAY_PER_REQUEST":
            if units:
                raise invalid_value(
                    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
                    "PAY_PER_REQUEST"
                )
            return Capacity(None, self._behaviour.now_s())
        if not units:
            raise invalid_value(
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
            )
        return Capacity((units["ReadCapacityUnits"], units["WriteCapacityUnits"]), self._behaviour.now_s())

    def _index(self, request: Request, kinds: Mapping[str, str], primary: KeySchema, mode: str) -> Index:
        projection = request["Projection"]
        return Index(
            request["IndexName"],
            KeySchema.read(request["KeySchema"], kinds),
            Projection(projection.get("ProjectionType", "ALL"), tuple(projection.get("NonKeyAttributes") or ())),
            primary=primary,
            capacity=self._capacity(mode, request),
            behaviour=self._behaviour,
            ready_s=self._behaviour.now_s() + self._behaviour.delay_s,
        )

    def describe_table(self, request: Request) -> Answer:
        return {"Table": self._described(self._catalog.table(request["TableName"]))}

    def list_tables(self, request: Request) -> Answer:
        start, limit = request.get("ExclusiveStartTableName") or "", request.get("Limit") or _TABLES_PAGE
        names = [name for name in self._catalog.names() if name > start]
        more = {"LastEvaluatedTableName": names[limit - 1]} if len(names) > limit else {}
        return {"TableNames": names[:limit], **more}

    def delete_table(self, request: Request) -> Answer:
        table = self._catalog.active(request["TableName"])
        if table.settings.deletion_protection:
            raise invalid(
                "Resource cannot be deleted as it is currently protected against deletion. "
                "Disable deletion protection first."
            )
        self._catalog.drop(table)
        return {"TableDescription": self._described(table)}

    def update_table(self, request: Request) -> Answer:
        table = self._catalog.active(request["TableName"])
        _check_wishes(request)
        kinds = table.kinds | {
            one["AttributeName"]: one["AttributeType"] for one in request.get("AttributeDefinitions") or []
        }
        changes = [
            (verb, index)
            for change in request.get("GlobalSecondaryIndexUpdates") or []
            for verb, index in change.items()
            if index
        ]
        for verb, index in changes:
            self._change_index(table, verb, index, kinds)
        mode = request.get("BillingMode")
        if mode or request.get("ProvisionedThroughput"):
            table.capacity = self._capacity(mode or "PROVISIONED", request)
        table.kinds = {name: kinds[name] for name in _key_names(table)}
        self._set(table, request)
        table.updated_s = self._behaviour.now_s() + self._behaviour.delay_s
        self._catalog.note(table)
        return {"TableDescription": self._described(table)}

    def _change_index(self, table: Table, verb: str, request: Request, kinds: Mapping[str, str]) -> None:
        name = request["IndexName"]
        if verb == "Create":
            _check_keys([{"KeySchema": key_schema(table.schema)}, request], kinds, all_used=False)
            if name in table.indexes:
                raise invalid_value(f"Duplicate index name: {name}")
            mode = "PAY_PER_REQUEST" if table.capacity.provisioned is None else "PROVISIONED"
            table.add_index(self._index(request, kinds, table.schema, mode))
            return
        if name not in table.indexes:
            raise no_table() if verb == "Delete" else invalid(f"The table does not have the specified index: {name}")
        if verb == "Delete":
            table.indexes[name].gone_s = self._behaviour.now_s() + self._behaviour.delay_s
        else:
            table.indexes[name].capacity = self._capacity("PROVISIONED", request)

    def _set(self, table: Table, request: Request) -> None:
        settings = table.settings
        if (protects := request.get("DeletionProtectionEnabled")) is not None:
            settings.deletion_protection = protects
        if (encryption := request.get("SSESpecification")) is not None:
            settings.encrypts = bool(encryption.get("Enabled"))
            settings.kms_key = encryption.get("KMSMasterKeyId") if settings.encrypts else None
        settings.table_class = request.get("TableClass") or settings.table_class

    def _described(self, table: Table) -> Answer:
        settings = table.settings
        on_demand = table.capacity.provisioned is None
        described: Answer = {
            "TableName": table.name,
            "TableStatus": table.status(),
            "TableArn": table.arn,
            "TableId": table.identity,
            "CreationDateTime": table.created_s,
            "KeySchema": key_schema(table.schema),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind} for name, kind in sorted(table.kinds.items())
            ],
            "ProvisionedThroughput": table.capacity.described(),
            "TableSizeBytes": table.bytes,
            "ItemCount": len(table.rows),
            "DeletionProtectionEnabled": settings.deletion_protection,
        }
        if on_demand:
            described["BillingModeSummary"] = {"BillingMode": "PAY_PER_REQUEST"}
        if indexes := [*table.listed_indexes()]:
            described["GlobalSecondaryIndexes"] = indexes
        if settings.encrypts:
            key = settings.kms_key or f"arn:aws:kms:{self._behaviour.region}:{ACCOUNT}:key/aws-dynamodb"
            described["SSEDescription"] = {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}
        if settings.table_class != "STANDARD":
            described["TableClassSummary"] = {"TableClass": settings.table_class}
        return described

    def update_time_to_live(self, request: Request) -> Answer:
        table, wanted = self._catalog.active(request["TableName"]), request["TimeToLiveSpecification"]
        if wanted["Enabled"] == (table.settings.ttl_attribute is not None):
            raise invalid(f"TimeToLive is already {'enabled' if wanted['Enabled'] else 'disabled'}")
        table.settings.ttl_attribute = wanted["AttributeName"] if wanted["Enabled"] else None
        self._catalog.note(table)
        return {"TimeToLiveSpecification": dict(wanted)}

    def describe_time_to_live(self, request: Request) -> Answer:
        attribute = self._catalog.table(request["TableName"]).settings.ttl_attribute
        if attribute is None:
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": attribute}}

    def update_continuous_backups(self, request: Request) -> Answer:
        table, wanted = self._backed_up(request), request["PointInTimeRecoverySpecification"]
        table.settings.point_in_time_recovery = wanted["PointInTimeRecoveryEnabled"]
        table.settings.recovery_days = wanted.get("RecoveryPeriodInDays") or table.settings.recovery_days
        self._catalog.note(table)
        return self.describe_continuous_backups(request)

    def describe_continuous_backups(self, request: Request) -> Answer:
        settings = self._backed_up(request).settings
        recovery: Answer = {"PointInTimeRecoveryStatus": "DISABLED"}
        if settings.point_in_time_recovery:
            recovery = {"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": settings.recovery_days}
        return {
            "ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": recovery,
            }
        }

    def _backed_up(self, request: Request) -> Table:
        table = self._catalog.find(request["TableName"])
        if table is None:
            raise Refusal("TableNotFoundException", f"Table not found: {request['TableName']}")
        return table

    def tag_resource(self, request: Request) -> Answer:
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        table = self._tagged(request)
        table.settings.tags.update(tags)
        self._catalog.note(table)
        return {}

    def untag_resource(self, request: Request) -> Answer:
        table = self._tagged(request)
        for key in request["TagKeys"]:
            table.settings.tags.pop(key, None)
        self._catalog.note(table)
        return {}

    def list_tags_of_resource(self, request: Request) -> Answer:
        tags = self._tagged(request).settings.tags
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _tagged(self, request: Request) -> Table:
        arn = request["ResourceArn"]
        found = self._catalog.find(arn)
        if found is None or found.arn != arn:
            raise Refusal("ResourceNotFoundException", f"Requested resource not found: ResourcArn: {arn} not found")
        return found


def _key_names(table: Table) -> dict[str, None]:
    schemas = [table.schema, *[index.schema for index in table.indexes.values()]]
    return dict.fromkeys(name for schema in schemas for name in schema.names)


def _check_keys(owners: Sequence[Request], kinds: Mapping[str, str], *, all_used: bool = True) -> None:
    """Raise Refusal unless every key of a table and its indexes is defined, and each definition is for one."""
    used: dict[str, None] = {}
    for owner in owners:
        elements = owner["KeySchema"]
        if elements[0]["KeyType"] != "HASH":
            raise invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
        if len(elements) > 1 and elements[1]["KeyType"] != "RANGE":
            raise invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
        names = [element["AttributeName"] for element in elements]
        if len(set(names)) < len(names):
            raise invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
        if any(name not in kinds for name in names):
            raise invalid_value(
                "Some index key attributes are not defined in AttributeDefinitions. "
                f"Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(kinds)}]"
            )
        used |= dict.fromkeys(names)
    named = [owner["IndexName"] for owner in owners[1:]]
    if len(set(named)) < len(named):
        raise invalid_value(f"Duplicate index name: {max(named, key=named.count)}")
    if all_used and len(used) < len(kinds):
        raise invalid_value(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in "
            "AttributeDefinitions"
            if len(owners) == 1
            else f"Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(kinds)}], "
            f"keys used: [{', '.join(used)}]"
        )


def _check_wishes(request: Request) -> None:
    """Refuse what would be missed later; a stream that is to be off is."""
    for name, what in _NOT_THERE.items():
        wish = request.get(name)
        if wish and wish != {"StreamEnabled": False}:
            raise invalid(f"The local DynamoDB has no {what}")
