#!/usr/bin/env python3
"""Writes Docs/JSON.md and Docs/schemas/*.schema.json: what every --json writes, field by field.

This file is the one place where a field is described; the tests hold every output against the schemas.
Run it in the top folder, by `make schemas`.
"""
import json
import pathlib

OPTIONAL = "optional"

PATTERNS = {
    "time": ("string", {"format": "date-time"}, "RFC 3339"),
    "cid": ("string", {"pattern": "^[bz][1-9A-Za-z]+$"}, "CID"),
    "did": ("string", {"pattern": "^did:"}, "DID"),
    "string": ("string", {}, "string"),
    "int": ("integer", {}, "integer"),
    "bool": ("boolean", {}, "boolean"),
}


class Object:
    def __init__(self, *fields):
        self.fields = fields


class Array:
    def __init__(self, item):
        self.item = item


class Map:
    def __init__(self, value):
        self.value = value


class Enum:
    def __init__(self, *values):
        self.values = values


class OrNull:
    def __init__(self, value):
        self.value = value


def schema(kind):
    if isinstance(kind, Object):
        return object_schema(kind.fields)
    if isinstance(kind, Array):
        return {"type": "array", "items": schema(kind.item)}
    if isinstance(kind, Map):
        return {"type": "object", "additionalProperties": schema(kind.value)}
    if isinstance(kind, Enum):
        return {"type": "string", "enum": list(kind.values)}
    if isinstance(kind, OrNull):
        return {"anyOf": [schema(kind.value), {"type": "null"}]}
    is_nullable = kind.endswith("?")
    name, rules, _ = PATTERNS[kind.rstrip("?")]
    return {"type": [name, "null"] if is_nullable else name, **rules}


def object_schema(fields):
    properties, required = {}, []
    for name, kind, text, *rest in fields:
        properties[name] = {"description": text, **schema(kind)}
        if OPTIONAL not in rest:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def type_name(kind):
    if isinstance(kind, Object):
        return "object"
    if isinstance(kind, Array):
        return f"array of {type_name(kind.item)}"
    if isinstance(kind, Map):
        return f"object: {type_name(kind.value)} by name"
    if isinstance(kind, Enum):
        return " \\| ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, OrNull):
        return f"{type_name(kind.value)} or null"
    name = PATTERNS[kind.rstrip("?")][2]
    return name + (" or null" if kind.endswith("?") else "")


def rows(fields, prefix=""):
    for name, kind, text, *rest in fields:
        yield f"| `{prefix}{name}` | {type_name(kind)}{', optional' if OPTIONAL in rest else ''} | {text} |"
        inner, path = kind, f"{prefix}{name}"
        while not isinstance(inner, Object):
            if isinstance(inner, Array):
                inner, path = inner.item, path + "[]"
            elif isinstance(inner, Map):
                inner, path = inner.value, path + ".*"
            elif isinstance(inner, OrNull):
                inner = inner.value
            else:
                break
        if isinstance(inner, Object) and inner not in SHARED:
            yield from rows(inner.fields, path + ".")
        elif isinstance(inner, Object):
            yield f"| `{path}.…` | | see [{SHARED[inner]}](#{SHARED[inner].lower().replace(' ', '-')}) |"


LIST_FAULT = Object(
    ("reason", "string", "why the server's list of blobs is not whole"),
    ("why", "string", "the same in words"),
    ("status", "int", "the HTTP status", OPTIONAL),
    ("transient", "bool", "whether asking again may help"),
)

ACCEPTED = Object(
    ("date", "time", "when the loss was accepted"),
    ("reason", "string?", "why"),
)

MISSING_FIELDS = (
    ("cid", "cid", "the blob"),
    ("reason", "string", "why it is missing: `not-provided`, `not-found`, `mismatch` and others (FORMAT 6.3)"),
    ("why", "string", "the same in words"),
    ("status", "int?", "the HTTP status of the server's answer"),
    ("size", "int?", "its size in bytes, as a record declares it"),
    ("referenced", "bool", "whether a record refers to it; otherwise only the server lists it"),
    ("firstTried", "time?", "when it was first asked for"),
    ("lastTried", "time?", "when it was last asked for"),
    ("accepted", ACCEPTED, "that the loss is accepted", OPTIONAL),
)

LOST_BLOB = Object(
    ("cid", "cid", "the blob"),
    ("why", "string", "why it is missing or how it is damaged"),
    ("record", "string?", "the first record that refers to it"),
    ("type", "string?", "its media type, as that record declares it"),
    ("size", "int?", "its size in bytes, as that record declares it"),
    ("accepted", ACCEPTED, "that the loss is accepted", OPTIONAL),
)

ANSWER = Object(
    ("server", "string", "the server"),
    ("reason", "string", "what its answer means"),
    ("why", "string", "the same in words"),
    ("status", "int?", "the HTTP status"),
    ("wantsLogin", "bool", "whether it may give the blob to the account's owner"),
)

DOUBTS = Array(Enum("rollback", "fork", "handle", "unsigned", "behind", "future"))
STANDING = (
    ("doubts", DOUBTS, "what spoke against the snapshot when it was made; absent if nothing did", OPTIONAL),
    ("accepted", DOUBTS, "what of that the user accepted; absent if nothing was", OPTIONAL),
)

SNAPSHOT_FIELDS = (
    ("did", "did", "the account"),
    ("handle", "string?", "its handle, as it was known"),
    ("pds", "string?", "its server"),
    ("rev", "string?", "the revision; null for a commit of version 2"),
    ("commit", "cid", "the signed commit"),
    ("previous", "cid?", "the manifest of the snapshot before it in the file"),
    ("createdAt", "string", "when it was made, RFC 3339"),
    ("tool", "string", "the program that made it"),
    ("complete", "bool", "whether nothing is missing, and nothing unknown may be"),
    ("counts", Object(
        ("records", "int", "records"), ("nodes", "int", "tree nodes"), ("blocks", "int", "distinct blocks"),
        ("recordBlocks", "int", "distinct blocks that are records", OPTIONAL),
    ), "how much the repository holds"),
    ("blobs", Object(
        ("referenced", "int", "blobs that records refer to"), ("held", "int", "of these, in the archive"),
        ("heldBytes", "int", "their bytes"), ("missing", "int", "of these, not in the archive"),
        ("extras", "int", "held blobs that no record refers to"), ("extrasBytes", "int", "their bytes"),
        ("listed", "int", "blobs that the server listed", OPTIONAL),
        ("listedMissing", "int", "listed blobs that no record refers to and that are missing", OPTIONAL),
        ("accepted", "int", "missing blobs that are accepted as lost", OPTIONAL),
        ("listFault", LIST_FAULT, "why the server's list is not whole", OPTIONAL),
        ("new", "int", "blobs that this snapshot added", OPTIONAL), ("newBytes", "int", "their bytes", OPTIONAL),
    ), "its blobs, when it was made"),
    ("car", Object(
        ("bytes", "int", "its length in bytes"), ("sha256", "string?", "its SHA-256; null if it never was a CAR that came in"),
        ("blocks", "int", "its sections"),
    ), "the CAR of the repository"),
    ("unreadable", Object(
        ("records", "int", "records that cannot be read"),
        ("partlySearched", "int", "of these, those that may refer to blobs that are not known"),
    ), "records that break the data model", OPTIONAL),
    *STANDING,
    ("fetched", Object(
        ("kind", Enum("full", "incremental"), "whether all of it came, or what had changed"),
        ("since", "string", "the revision before it", OPTIONAL),
        ("repoRev", "string", "what the server called its revision", OPTIONAL),
        ("leftOut", Object(("blocks", "int", "blocks"), ("bytes", "int", "their bytes")),
         "blocks beside the repository that were not kept", OPTIONAL),
    ), "how it came from a server", OPTIONAL),
    ("host", Object(("os", "string", "the operating system"), ("durationMs", "int", "how long it took, in milliseconds")),
     "where it was made"),
)

PRIVATE = ("private", Array(Object(
    ("endpoint", "string", "the method that gave it"), ("fetchedAt", "string", "when, RFC 3339"),
    ("contentType", "string?", "the media type, as the server named it"), ("answers", "int", "answers, one a page"),
    ("bytes", "int", "their bytes"),
    ("fault", Object(("kind", Enum("not-given", "not-fetched", "not-whole", "lost"), "what it means"),
                     ("why", "string", "why")), "why there is nothing, or not everything", OPTIONAL),
)), "what the server gave to the account's owner alone", OPTIONAL)

SHARED = {LIST_FAULT: "List fault", ACCEPTED: "Accepted loss", ANSWER: "Answer", LOST_BLOB: "Lost blob"}

HEAD = ("archiveHead", "cid?", "the CID of the newest manifest, which commits to everything in the file")
FILE = ("file", "string", "the archive")

SCHEMAS = {}


def add(name, text, *fields):
    """Describes an object, or one more form of it."""
    SCHEMAS.setdefault(name, []).append((text, fields))


ERROR = Object(
    ("status", "int", "the exit status that it leads to"), ("what", "string", "what went wrong"),
    ("where", "string?", "the file, account or place that it is about"), ("hint", "string?", "what to do"))
add("error", "What went wrong, on standard error; one object, whatever the verb.", ("error", ERROR, "the error"))

add("message", "What is said on standard error beside errors.",
    ("kind", Enum("damaged", "lost", "refused", "incomplete", "missing", "unfinished", "interrupted", "warning", "note",
                  "error", "accepted as lost", "not genuine"), "what it is about"),
    ("file", "string?", "the archive, where there are several"), ("text", "string", "the words"))

add("status", "`carpack status`: how an archive stands.",
    FILE, ("readable", "bool", "whether it can be opened"), ("error", "string?", "why not"),
    ("bytes", "int?", "its size"), ("verified", "time?", "when all of it was last verified"),
    ("verdict", OrNull(Enum("intact", "incomplete", "damaged")), "what came of that"),
    ("bytesSinceVerified", "int?", "how many bytes were appended since"),
    ("accounts", Array(Object(
        ("did", "did", "the account"), ("handle", "string?", "its handle"), ("snapshots", "int", "its snapshots"),
        ("newest", "string", "when the newest was made"),
        ("ageSeconds", "int?", "seconds since a backup last found that the server has nothing newer"),
        ("overdue", "bool", "whether that is more than --max-age"),
        ("complete", "bool", "whether nothing is missing but what is accepted as lost"), *STANDING,
        ("records", "int", "its records"), ("blobs", "int", "blobs that they refer to"),
        ("missingBlobs", "int", "of these, missing and not accepted as lost"),
    )), "the accounts in it"))

NUMBERED = Object(
    ("number", "int?", "its number, from 1 for the oldest"), ("manifest", "cid?", "its manifest"), *SNAPSHOT_FIELDS, PRIVATE)
SHARED[NUMBERED] = "Snapshot"

add("info", "`carpack info`: what an archive is.",
    FILE, ("bytes", "int", "the size of the file"), ("committedBytes", "int", "of these, up to the last footer"),
    ("streamBytes", "int", "the length of its content, a CAR"), ("sections", "int", "its sections"),
    ("generations", "int", "successful writes"), ("formatVersion", "string", "FORMAT's version"),
    ("indexSegments", "int", "index segments in use"), HEAD, ("snapshotCount", "int", "snapshots in the file"),
    ("snapshot", OrNull(NUMBERED), "the newest of those shown"),
    ("snapshots", Array(NUMBERED), "of each account the newest, or those that --at and --account choose"))

add("log", "`carpack log` and `ls --snapshots`: a snapshot.",
    FILE, ("number", "int", "its number, from 1 for the oldest"), ("manifest", "cid", "its manifest"),
    ("vouched", "bool", "whether a footer leads to it"), ("bytesAdded", "int?", "by how many bytes the file grew for it"),
    *SNAPSHOT_FIELDS)

add("record", "`carpack log ARCHIVE RECORD`: a snapshot that changed the record.",
    FILE, ("account", "did", "whose it is"), ("path", "string", "collection/rkey"),
    ("change", Enum("created", "updated", "deleted"), "what happened"), ("cid", "cid?", "the record; null if it is gone"),
    ("number", "int", "the snapshot's number"), ("createdAt", "string", "when the snapshot was made"))

add("ls", "`carpack ls`: a record or a blob.",
    ("kind", Enum("record", "blob", "extra"), "an extra is a blob that no record refers to"),
    ("account", "did?", "whose it is"), ("path", "string?", "the record, or the first that refers to the blob"),
    ("cid", "cid", "its CID"), ("type", "string?", "its media type"), ("size", "int?", "its bytes; if missing, as declared"),
    ("state", Enum("held", "missing", "damaged"), "whether it is there"),
    ("accepted", ACCEPTED, "that the loss is accepted", OPTIONAL),
    ("createdAt", "time", "with -l, --since or --until: when the record was made", OPTIONAL))

add("find", "`carpack find`: a record in which the text is.",
    FILE, ("account", "did", "whose it is"), ("path", "string", "collection/rkey"), ("cid", "cid", "the record"),
    ("excerpt", "string", "the text and what stands around it"), ("firstSnapshot", "int", "the first snapshot that has it"),
    ("lastSnapshot", "int", "the last snapshot that has it"), ("current", "bool", "whether the newest has it"))

AMOUNT = Object(("count", "int", "how many"), ("bytes", "int", "their bytes"))
add("stats", "`carpack stats`: what an account is made of.",
    FILE, ("did", "did", "the account"), ("handle", "string?", "its handle"), ("rev", "string?", "the revision"),
    ("records", "int", "records"), ("recordBytes", "int", "their bytes"), ("blobs", "int", "blobs that they refer to"),
    ("blobBytes", "int", "their bytes; of those that are missing, as declared"),
    ("missingBlobs", "int", "of these, missing or damaged"),
    ("undatedRecords", "int", "records whose key is no time"), ("collections", Map(AMOUNT), "the records of each collection"),
    ("years", Map(AMOUNT), "the records of each year, by their keys"), ("types", Map(AMOUNT), "the blobs of each media type"),
    ("complete", "bool", "whether all records are in the archive"))

add("export", "`carpack export --csv`: the tables that were written.",
    FILE, ("did", "did", "the account"), ("rev", "string?", "the revision"), ("folder", "string", "where the tables are"),
    ("tables", Array(Object(("name", "string", "the file"), ("rows", "int", "its records"))), "the tables, one a collection"),
    ("missingRecords", "int", "records that are not in the archive, of which only the names are in a table"),
    ("complete", "bool", "whether all records are in the tables"))

add("export", "`carpack export --sqlite`: the database that was written.",
    FILE, ("database", "string", "the database"), ("newSnapshots", "int", "the snapshots that came in"),
    ("records", "int", "the records in it, in all their forms"),
    ("missingRecords", "int", "those of them that are not in the archive, or cannot be read, and have only their names"),
    ("complete", "bool", "whether all records are in it"))
add("export", "`carpack export --html`: the pages that were written.",
    FILE, ("did", "did", "the account"), ("rev", "string?", "the revision"), ("folder", "string", "where the pages are"),
    ("pages", "int", "the pages"), ("posts", "int", "the posts on them"), ("others", "int", "the other records on them"),
    ("media", "int", "the media files"), ("missingMedia", "int", "the media that posts show and the archive lacks"),
    ("missingRecords", "int", "the records that are not in the archive, or cannot be read"),
    ("complete", "bool", "whether all of that is there"))

add("serve", "`carpack serve` and `carpack view`: where the server is, once it is there.",
    ("page", "string", "the secret address of the page that shows the archives"),
    ("pds", "string?", "the address of the personal data server; null for `carpack view`"),
    ("archives", "int", "the archives that are served"), ("accounts", "int", "the accounts in them"))

add("missing", "`carpack missing`: a blob that is not there, or is damaged.",
    ("kind", Enum("blob"), ""), FILE, ("account", "did", "whose it is"), *MISSING_FIELDS,
    ("damage", "string?", "how it is damaged, if it is there"), ("record", "string?", "the first record that refers to it"),
    ("type", "string?", "its media type, as that record declares it"),
    ("archiveVerified", "time?", "when the archive was last verified"))
add("missing", "Or why more may be missing than is known.",
    ("kind", Enum("listFault"), ""), FILE, ("account", "did", "whose list it is"), ("listFault", LIST_FAULT, "why"))

add("acceptance", "`carpack missing --accept` and `--reconsider`.",
    FILE, ("accepted", "int", "losses accepted", OPTIONAL), ("reconsidered", "int", "losses taken back", OPTIONAL),
    ("acceptedCount", "int", "losses accepted now"), ("missingCount", "int", "blobs missing otherwise"),
    ("bytesAdded", "int", "by how many bytes the file grew"), HEAD)

add("diff", "`carpack diff`: a record that changed.",
    ("kind", Enum("record"), ""), ("change", Enum("created", "updated", "deleted"), "how"), ("path", "string", "collection/rkey"),
    ("old", "cid?", "the record before"), ("new", "cid?", "the record after"))
add("diff", "Or a blob that came or went.",
    ("kind", Enum("blob"), ""), ("change", Enum("added", "gone"), "how"), ("cid", "cid", "the blob"),
    ("path", "string", "the first record that refers to it"), ("type", "string?", "its media type"),
    ("size", "int?", "its bytes"), ("state", Enum("held", "missing", "damaged"), "whether it is there"))
ENDS = Object(
    ("number", "int", "its number"), ("manifest", "cid", "its manifest"), ("commit", "cid", "its commit"),
    ("rev", "string?", "its revision"), ("createdAt", "string", "when it was made"))
add("diff", "Or, at last, the sum.",
    ("kind", Enum("summary"), ""), ("account", "did", "the account"), ("old", ENDS, "the first snapshot"),
    ("new", ENDS, "the second"), ("created", "int", "records created"), ("updated", "int", "records updated"),
    ("deleted", "int", "records deleted"), ("blobsAdded", "int", "blobs that came"), ("blobsGone", "int", "blobs that went"),
    ("nodesCreated", "int", "tree nodes that came"), ("nodesDeleted", "int", "tree nodes that went"),
    ("complete", "bool", "whether all could be compared"))

add("verify", "`carpack verify`.",
    FILE, ("verdict", Enum("intact", "incomplete", "damaged"), "of the whole file"),
    ("genuine", "bool?", "whether nothing speaks against an account having made its snapshots; null with --quick"),
    ("depth", Enum("full", "quick"), "whether everything was hashed, or checksums compared"),
    ("bytes", "int", "the size of the file"), ("frames", "int", "data frames"), ("sections", "int", "sections"),
    ("unverifiableSections", "int", "sections under a hash function that cannot be checked"), HEAD,
    ("snapshot", OrNull(Object(*SNAPSHOT_FIELDS)), "the newest snapshot"),
    ("snapshots", Array(Object(
        ("number", "int", "its number"), ("manifest", "cid", "its manifest"), ("did", "did", "the account"),
        ("handle", "string?", "its handle"), ("rev", "string?", "its revision"), ("commit", "cid", "its commit"),
        ("createdAt", "string", "when it was made"), ("verdict", Enum("intact", "incomplete", "damaged"), "of the snapshot"),
        ("decides", "bool", "whether what it lacks counts for the verdict of the file"),
        ("carDigested", "bool", "whether the digest of its CAR was compared"),
        ("levels", Array(Object(
            ("level", Enum("intact", "well-formed", "signed", "identity-proven", "continuous", "complete"), "the level of proof"),
            ("holds", "bool?", "whether it holds; null if the archive has nothing that would tell"), ("why", "string", "why"),
        )), "what is proven; absent with --quick", OPTIONAL),
        ("damage", Array("string"), "what is damaged"), ("damagedBlobCount", "int", "damaged blobs"),
        ("damagedBlobs", Array(LOST_BLOB), "those not named with a newer snapshot"),
        ("listFault", LIST_FAULT, "why the server's list of blobs was not whole", OPTIONAL),
        ("missingBlobCount", "int", "missing blobs"), ("unreadableRecords", "int", "records that cannot be read"),
        ("partlySearchedRecords", "int", "of these, those that may refer to unknown blobs"),
        ("acceptedBlobCount", "int", "missing blobs that are accepted as lost"),
        ("missingBlobs", Array(LOST_BLOB), "those not named with a newer snapshot"),
    )), "all snapshots that were looked at, the newest first"),
    ("findings", Array(Object(
        ("severity", "string", "how bad it is"), ("what", "string", "what was found"),
        ("offset", "int?", "the byte in the file where it is"),
    )), "what is wrong with the file, or may be"),
    ("damage", Array("string"), "what is damaged of file and snapshots"),
    ("damagedBlobs", Array(LOST_BLOB), "all damaged blobs"), ("missingBlobs", Array(LOST_BLOB), "all missing blobs"),
    ("recordWarnings", Array("string"), "records that break the data model, the first of them"))

add("inspect", "`carpack inspect`: what is in a CAR. Of a CAR without a commit that can be read, only the first part.",
    ("records", Array(Object(
        ("path", "string", "collection/rkey"), ("cid", "cid", "the record"), ("present", "bool", "whether its block is there"),
    )), "with --records: every record", OPTIONAL),
    ("blobs", Array(Object(
        ("cid", "cid", "the blob"), ("mimeType", "string?", "its media type"), ("size", "int?", "its bytes"),
        ("record", "string", "the first record that refers to it"), ("legacy", "bool", "whether only by the old form of a reference"),
    )), "with --blobs: every blob", OPTIONAL),
    ("file", "string", "the CAR"), ("bytes", "int", "its length"), ("sha256", "string", "its SHA-256"),
    ("carVersion", "int", "1 or 2"), ("roots", Array("cid"), "the roots in its header"), ("blockCount", "int", "its sections"),
    ("distinctBlockCount", "int", "its distinct blocks"),
    ("hashMismatchBlocks", Array("cid"), "blocks that do not hash to their CIDs"),
    ("unverifiableBlockCount", "int", "blocks under a hash function that cannot be checked"),
    ("codecs", Map("int"), "blocks of each codec"), ("rootIsFirstBlock", "bool", "whether the first root is the first block"),
    ("error", "string", "why the CAR is malformed", OPTIONAL), ("note", "string", "why there is no commit", OPTIONAL),
    ("rootKeys", Array("string"), "the fields of the root, if it is no commit", OPTIONAL),
    *[(name, kind, text, OPTIONAL) for name, kind, text in (
        ("did", "did", "the account"), ("commitVersion", "int", "the version of the commit"),
        ("rev", "string?", "the revision"), ("prev", "cid?", "the commit before it, if it says so"),
        ("hasPrevField", "bool", "whether the commit has a field `prev`"), ("commitKeys", Array("string"), "its fields"),
        ("data", "cid", "the root of the tree"), ("sigBytes", "int", "the length of the signature"),
        ("mstNodeCount", "int", "tree nodes"), ("mstRootLayer", "int?", "the layer of the root"),
        ("mstDepth", "int", "levels of the tree"), ("mstMissingNodes", Array("cid"), "nodes that are not there"),
        ("mstProblems", Array("string"), "rules that the tree breaks, the first of them"),
        ("mstProblemCount", "int", "how many"), ("recordCount", "int", "records"),
        ("distinctRecordCids", "int", "distinct records"), ("recordsByCollection", Map("int"), "records of each collection"),
        ("recordsMissingBlockCount", "int", "records whose blocks are not there"),
        ("recordDecodeErrors", Array("string"), "records that cannot be read, and why"),
        ("recordsUnreadableCount", "int", "how many"),
        ("recordsPartlySearchedCount", "int", "of these, those that may refer to unknown blobs"),
        ("recordReencodeDiffers", "int", "records that are not in canonical form"),
        ("floatsInRecords", "int", "records with floats"), ("recordWarningCount", "int", "records that break the data model"),
        ("recordsSha256", "string", "the SHA-256 over the lines `collection/rkey CID` of all records"),
        ("firstRecord", "string?", "the first of these lines"), ("lastRecord", "string?", "the last of these lines"),
        ("blobRefCount", "int", "references to blobs"), ("legacyBlobRefCount", "int", "references in the old form"),
        ("blobTotalDeclaredBytes", "int", "the sum of the declared sizes"),
        ("blobMimeTypes", Map("int"), "references of each media type"), ("blobCidCount", "int", "distinct blobs"),
        ("blobCidsSha256", "string", "the SHA-256 over their CIDs, sorted, one a line"), ("blobCids", Array("cid"), "their CIDs"),
        ("legacyBlobCidCount", "int", "distinct blobs in the old form"),
        ("legacyBlobCidsSha256", "string", "the same for these"), ("legacyBlobCids", Array("cid"), "their CIDs"),
        ("unreachableBlockCount", "int", "blocks that the tree does not lead to"),
        ("complete", "bool", "whether nothing is missing"), ("wellFormed", "bool", "whether nothing breaks a rule"),
        ("signed", "bool", "with --key or --identity: whether a key that may have signed did"),
        ("why", "string", "with `signed`: why"),
    )])

DAMAGE = (
    ("damagedSections", "int", "sections of the archive that are damaged"),
    ("damagedElsewhere", "bool", "whether something else of it is"),
)
add("pack", "`carpack pack`.",
    FILE, ("bytes", "int", "its size"), ("bytesAdded", "int", "by how many bytes it grew"),
    ("unchanged", "bool", "whether nothing was new"), ("healed", "bool", "whether damaged sections were written again"),
    *DAMAGE, ("streamBytes", "int", "the length of its content"), ("sections", "int", "its sections"), HEAD,
    *SNAPSHOT_FIELDS,
    ("missing", Array(Object(("cid", "cid", "the blob"), ("reason", "string", "why"))), "blobs that are missing"),
    ("refused", Array(Object(("file", "string", "the file"), ("why", "string", "why"))), "files that were not taken"),
    ("leftOut", "int", "files that no record refers to"))

add("extract", "`carpack extract`.",
    ("directory", "string", "the folder"), ("written", "int", "files written"), ("bytes", "int", "their bytes"),
    ("replaced", "int", "of these, files that an earlier extraction wrote"),
    ("alreadyThere", "int", "files that were there and correct"), ("removed", "int", "files removed with --delete"), ("missing", Array("string"), "blobs that are missing"),
    ("missingRecords", Array("string"), "records that are missing"), ("missingNodes", Array("string"), "tree nodes that are missing"),
    ("damaged", Array("string"), "what is damaged"), ("refused", Array("string"), "names that no file may have"),
    ("inTheWay", Array("string"), "files that are in the way, the first of them"),
    ("inTheWayCount", "int", "how many"), ("changed", Array("string"), "files that were changed, and therefore not removed"))

add("prune", "`carpack prune`.",
    FILE, ("dryRun", "bool", "whether nothing was changed"), ("forgotten", "int", "snapshots forgotten"),
    ("bytes", "int", "the size of the archive"), ("bytesAdded", "int", "by how many bytes it grew"), HEAD,
    ("snapshots", Array(Object(
        ("number", "int", "its number"), ("manifest", "cid", "its manifest"), ("did", "did", "the account"),
        ("rev", "string?", "its revision"), ("createdAt", "string", "when it was made"), ("kept", "bool", "whether it is kept"),
        ("reasons", Array("string"), "the rules that keep it"),
    )), "all snapshots, the oldest first"))

add("compact", "`carpack compact`.",
    FILE, ("replaced", "bool", "whether a new archive was written"), ("snapshots", "int", "its snapshots"),
    ("bytesBefore", "int", "the size before"), ("bytes", "int", "the size now"), ("leftOut", "int", "sections left out"),
    ("sectionsBefore", "int", "sections before"), ("sections", "int", "sections now"), (*HEAD, OPTIONAL))

add("merge", "`carpack merge`.",
    FILE, ("bytes", "int", "its size"), ("bytesBefore", "int", "the size of the archives together"), ("sections", "int", "its sections"),
    ("snapshots", "int", "its snapshots"), ("foundAgain", "int", "snapshots that several archives had"),
    ("withoutPrivate", "int", "accounts whose private data was left out"),
    ("accounts", "int", "its accounts"), HEAD)

add("repair", "`carpack repair`.",
    FILE, ("segmentsRestored", "int", "index segments made again"), ("footersRestored", "int", "footers made again"),
    ("bytesCutOff", "int", "bytes of an unfinished write cut off"), ("reindexed", "bool", "whether a new index was appended"),
    ("bytesVoided", "int", "bytes of damage marked as superseded"), ("sectionsHealed", "int", "sections written again"),
    ("snapshotsFound", "int", "snapshots that no footer led to"), ("lostSections", "int", "sections that are lost"),
    ("lost", "string?", "what is damaged still"))

add("salvage", "`carpack repair -o`.",
    FILE, ("bytes", "int", "the size of the new archive"), HEAD, ("lostSections", "int", "sections that are lost"),
    ("lost", Array("string"), "these, the first of them"), ("lostSnapshots", Array("string"), "snapshots that are lost"),
    ("snapshots", Array(Object(
        ("did", "did", "the account"), ("rev", "string?", "its revision"), ("manifest", "cid", "its manifest"),
        ("oldManifest", "cid?", "its manifest in the damaged archive"), ("lostBlocks", "int", "blocks it lost"),
        ("lostRecords", "int", "records it lost"), ("records", Array("string"), "these, the first of them"),
        ("lostBlobs", Array("string"), "blobs it lost"), ("vouched", "bool", "whether a footer led to it", OPTIONAL),
    )), "the snapshots"))

add("resolve", "`carpack resolve`.",
    ("did", "did", "the account"), ("handle", "string?", "its handle, checked both ways"),
    ("claimedHandle", "string?", "the handle that its document claims"), ("pds", "string?", "its server"),
    ("signingKey", "string?", "its key, as a did:key"), ("curve", "string?", "the curve of the key"),
    ("sources", Object(
        ("handle", "string?", "where the handle is from"), ("document", "string?", "where the document is from"),
        ("pds", "string?", "where the server is from"),
    ), "where each fact is from"),
    ("warnings", Array("string"), "what does not hold"))

add("verify-proof", "`carpack verify-proof`: what a proof of one record proves.",
    ("file", "string", "the proof"), ("did", "did", "the account"), ("rev", "string?", "its revision"), ("commit", "cid", "its commit"),
    ("path", "string", "collection/rkey"), ("cid", "cid?", "the record; null if it was not there"),
    ("signed", "bool?", "whether a key that may have signed did; null if that was not asked for"), ("why", "string", "why"),
    ("extraBlocks", "int", "blocks more than the proof takes"))

add("identity", "`carpack identity`: who an account was, when, and who signed that.",
    ("did", "did", "the account"), ("proven", "bool", "whether there is a log, checked back to its first operation"),
    ("faults", Array("string"), "what does not hold"),
    ("operations", Array(Object(
        ("cid", "cid", "the operation"), ("receivedAt", "string", "when the directory received it, as it says, RFC 3339"),
        ("kind", Enum("create", "operation", "tombstone"), "what it does"), ("handles", Array("string"), "the handles it names"),
        ("pds", "string?", "the server it names"), ("signingKey", "string?", "the key that signs the repository, as a did:key"),
        ("rotationKeys", Array("string"), "the keys that may sign what follows"),
        ("signer", "string", "the rotation key that signed it"),
        ("nullifiedBy", "cid?", "the operation that took it back"),
    )), "the log of a did:plc, the oldest first"),
    ("documents", Array(Object(
        ("snapshot", "int", "the first snapshot that has it"), ("createdAt", "string", "when that was made"),
        ("handle", "string?", "the handle it names"), ("pds", "string?", "the server it names"),
        ("signingKey", "string?", "the key it names"),
    )), "of an archive: the DID documents, those that changed"))

add("config", "`carpack config`.",
    ("file", "string?", "the configuration file"), ("exists", "bool", "whether it is there"),
    ("settings", Array(Object(
        ("table", "string", "`defaults`, or a verb"), ("name", "string", "the option"),
        ("values", Array("string"), "its value, several of a list, none of a secret"),
        ("secret", "bool", "whether the value is not shown"), ("line", "int", "where it stands"),
    )), "defaults of options"),
    ("accountList", "string?", "the file with accounts"),
    ("accounts", Array(Object(
        ("name", "string", "handle or DID"), ("output", "string?", "its archive, or the folder of it"),
        ("login", "bool", "whether to log in"), ("private", "bool", "whether to keep what is the owner's alone"),
        ("line", "int", "where it stands"),
    )), "accounts that are backed up"),
    ("hooks", Object(
        ("afterSuccess", "string?", "the program that is run after success"),
        ("onFailure", "string?", "the one for any other status"),
        ("seconds", "int", "how long one may take"),
    ), "programs that are run after a backup"))

add("fetch", "`carpack fetch latest` and `fetch blobs`.",
    ("did", "did", "the account"), ("rev", "string", "with `latest`: the revision", OPTIONAL),
    ("commit", "cid", "with `latest`: the newest commit", OPTIONAL),
    ("cid", "cid", "with `blobs`: a blob that the server lists", OPTIONAL))


UNRESTORED = Array(Object(
    ("cid", "cid", "the blob"), ("record", "string?", "the first record that refers to it"),
    ("reason", Enum("not-held", "accepted-as-lost", "damaged", "too-large", "refused", "other-cid", "not-served",
                    "other-bytes"), "why, in a word"),
    ("why", "string", "why")))
RESTORED = (
    ("did", "did", "the account"), ("rev", "string?", "its revision"), ("createdAt", "string", "when the snapshot was made"),
    ("commit", "cid", "its commit"), ("records", "int", "its records"), ("bytes", "int", "the bytes of its CAR"),
    ("blobs", "int", "blobs that records refer to"), ("heldBlobs", "int", "those that the archive holds"))
SERVER = (
    ("url", "string", "the server"), ("did", "did", "its DID"), ("userDomains", Array("string"), "the domains of its handles"),
    ("inviteRequired", "bool", "whether it wants an invite code"), ("blobLimit", "int?", "how long a blob may be, in bytes"))
STEP = Enum("server", "signing-key", "account", "repository", "blobs", "comparison", "preferences", "identity", "activation",
            "deactivation")


def restoring(name, text, *fields):
    add("restore", text, ("event", Enum(name), ""), *fields)


restoring("source", "`carpack restore` and `carpack rehearse`, an event a line. What is to be restored is known.", *RESTORED)
restoring("server", "What the new server wants and allows is known.", *SERVER)
restoring("step", "A step is done.", ("step", STEP, "which"), ("answer", "string", "what was answered"),
          ("wasDone", "bool", "whether it had been done before"))
restoring("progress", "Something is getting on; once a second at most.", ("stage", "string", "what"),
          ("done", "int", "blobs, or bytes, that are done"), ("total", "int", "how many there are; 0 if that is not known"))
restoring("waiting", "A limit is waited for.", ("seconds", "int", "how long"), ("why", "string", "what for"))
restoring("operation", "This operation is going to be sent, if that is agreed to.",
          ("operation", "string", "the operation, as JSON"), ("changes", Array("string"), "what it changes"))
restoring("document", "This document is to be published, for a did:web.", ("document", "string", "the document, as JSON"),
          ("url", "string", "where"))
restoring("warning", "Something is odd.", ("message", "string", "what"))
restoring("record", "With --record: what came of one.", ("path", "string", "collection/rkey"),
          ("outcome", Enum("written", "there", "occupied", "refused"), "what"), ("why", "string", "in words"))
restoring("plan", "With --plan: what would be done.", *RESTORED, ("server", Object(*SERVER), "the new server"),
          ("oldServer", "string?", "the old server"), ("oldStanding", "string?", "what it says of the account"),
          ("handle", "string?", "the handle"), ("losesHandle", "bool", "whether it goes with the old server"),
          ("uploads", "int", "blobs to send"), ("uploadBytes", "int", "their bytes"),
          ("unrestoredCount", "int", "blobs that would be missing"), ("unrestored", UNRESTORED, "the first of them"),
          ("rotationKeys", Array("string"), "the keys that may change the account"),
          ("hasPreferences", "bool", "whether the archive has preferences"), ("needs", Array("string"), "what has to be given"),
          ("warnings", Array("string"), "what is odd"))
restoring("finished", "It has come to its end, or stopped.", ("handle", "string?", "the handle on the new server"),
          ("newDID", "did?", "the new account, with --as-new"), ("oldServer", "string?", "the old server"),
          ("newServer", "string?", "the new server"), ("steps", Array(STEP), "the steps that are done"),
          ("recordsEqual", "bool?", "whether all records came back equal; null if they were not read back"),
          ("sentBlobs", "int", "blobs sent in this run"), ("sentBytes", "int", "their bytes"),
          ("equalBlobs", "int", "blobs that came back equal"), ("unrestoredCount", "int", "blobs not there, or not right"),
          ("unrestored", UNRESTORED, "the first of them"),
          ("stoppedBefore", "string?", "the option that goes on, where it stopped before what cannot be undone"),
          ("standing", Array("string"), "where things are, in words"), ("error", ERROR, "what ended it", OPTIONAL))

add("recovery-key", "`carpack recovery-key`.",
    ("did", "did", "the account", OPTIONAL), ("key", "string", "the public key, as did:key", OPTIONAL),
    ("file", "string", "with `new`: the file", OPTIONAL), ("curve", Enum("k256", "p256"), "with `new`: the curve", OPTIONAL),
    ("encrypted", "bool", "with `new`: whether there is a passphrase", OPTIONAL),
    ("place", "int?", "with `check` and `add`: the place among the rotation keys, from 1; null if it is none", OPTIONAL),
    ("rotationKeys", Array("string"), "the keys that may change the account, the strongest first", OPTIONAL))

ELSEWHERE = ("address", "string", "where the archive lies elsewhere, without a query")
add("push", "`carpack push`.", ("file", "string", "the archive"), ELSEWHERE,
    ("outcome", Enum("unchanged", "ahead", "created", "appended", "replaced", "healed"),
     "what was done; `ahead`: the object is a later state of the archive"),
    ("bytes", "int", "bytes of the object"), ("sent", "int", "bytes that were sent"),
    ("verified", "bool", "whether all of it was read back and compared"))
add("pull", "`carpack pull`.", ("file", "string", "the archive"), ELSEWHERE,
    ("outcome", Enum("unchanged", "ahead", "created", "appended", "replaced"),
     "what was done; `ahead`: the file is a later state of the archive"),
    ("bytes", "int", "bytes of the file"), ("fetched", "int", "bytes that were fetched"))

COUNTS = Array(Object(("name", "string", "what they have in common"), ("accounts", "int", "how many"),
                      ("nextTry", "time?", "when the first of them is tried again")))
add("fleet-add", "`carpack fleet add`.", ("accounts", "int", "accounts that were named"),
    ("new", "int", "those that were not in the fleet"), ("host", "string?", "the host whose accounts are listed"),
    ("firehose", "string?", "the stream that is followed"))
add("fleet-work", "`carpack fleet work`: an account a line, when its backup has ended.", ("did", "did", "the account"),
    ("outcome", Enum("complete", "incomplete", "failed"), "what came of it"),
    ("state", Enum("active", "deactivated", "suspended", "takendown", "deleted", "removed"),
     "what the account is; `removed`: its archive is gone, too"),
    ("reason", "string?", "why it is not complete"), ("rev", "string?", "the revision that is backed up"),
    ("bytes", "int?", "bytes of the archive"), ("bytesAdded", "int", "bytes that came to it"), ("worker", "string", "which worker"))
add("fleet-status", "`carpack fleet status`.", ("accounts", "int", "all accounts"),
    ("outcomes", COUNTS, "by what came of the newest backup: `complete`, `incomplete`, `failed`, `never`"),
    ("states", COUNTS, "accounts that are not active, by what they are"),
    ("reasons", COUNTS, "accounts that are not complete, by why, in a word"),
    ("due", "int", "accounts that are due and not taken"), ("lateSeconds", "int", "for how long the first of them has been"),
    ("running", "int", "accounts that are worked on"),
    ("oldestBackup", "time?", "of the active account that was not backed up for longest; null if one never was"),
    ("bytes", "int", "bytes of all archives"), ("backupsLastHour", "int", "backups that ended within an hour"),
    ("bytesLastHour", "int", "bytes that came by them"),
    ("failures", Array(Object(("did", "did", "the account"), ("reason", "string", "why"), ("nextTry", "time?", "when it is tried again"))),
     "the newest failures, twenty at most"),
    ("sources", Array(Object(("url", "string", "its address"), ("reason", "string", "why"))),
     "hosts and firehoses that broke off last and are tried again, and firehoses that have lost events"),
    ("workers", Array(Object(("name", "string", "what it is called"), ("since", "time", "since when it works"),
                             ("running", "int", "accounts it works on"), ("ended", "int", "backups it has ended"),
                             ("failed", "int", "those that failed"))), "workers that were seen within a minute"))


def event(name, text, *fields):
    add("backup", text, ("event", Enum(name), ""), *fields)


ACCOUNT = ("account", "string", "what the account was called")
event("started", "`carpack backup` and `carpack fill`, an event a line. An account's turn has come.", ACCOUNT)
event("resolved", "Who it is is known.", ACCOUNT, ("did", "did", "the account"), ("handle", "string?", "its handle"),
      ("pds", "string", "its server"))
event("repository", "The repository is there and checked.", ACCOUNT, ("records", "int", "its records"),
      ("bytes", "int", "bytes that came"), ("incremental", "bool", "whether only what had changed came"))
event("blobs", "What is to be fetched is known.", ACCOUNT, ("referenced", "int", "blobs that records refer to"),
      ("listed", "int?", "blobs that the server lists"), ("wanted", "int", "blobs to fetch"))
event("progress", "Something is getting on.", ACCOUNT,
      ("stage", Enum("resolving", "private", "repository", "checking", "listing", "blobs", "committing"), "what"),
      ("bytes", "int", "bytes so far"), ("done", "int", "blobs that came", OPTIONAL),
      ("total", "int", "blobs wanted", OPTIONAL), ("failed", "int", "blobs that did not come", OPTIONAL))
event("missing", "A blob does not come.", ACCOUNT, *MISSING_FIELDS, ("answers", Array(ANSWER), "what servers answered"))
event("arrived", "A missing blob has come (`fill`).", ACCOUNT, ("cid", "cid", "the blob"), ("from", "string", "the server"),
      ("answers", Array(ANSWER), "what others answered before"))
event("warning", "Something is odd.", ("account", "string?", "the account; null for the network"), ("message", "string", "what"))
event("retry", "A request is repeated.", ("host", "string", "the server"), ("afterMs", "int", "after so many milliseconds"),
      ("why", "string", "why"))
event("wait", "A server is waited for.", ("host", "string", "the server"), ("atMostMs", "int", "for so many milliseconds"),
      ("why", "string", "why"))
event("skipped", "An account that the server does not give out (`--all`).", ("account", "did", "the account"),
      ("status", "string", "what the server calls it"))
event("malformed", "An entry of the server's list that names no account (`--all`).", ("entry", "string", "the entry"))
event("duplicate", "An account that was named twice.", ACCOUNT, ("did", "did", "the account"))
event("plan", "With --dry-run: what would be fetched.", ACCOUNT, ("did", "did", "the account"), ("handle", "string?", "its handle"),
      ("pds", "string", "its server"), FILE, ("exists", "bool", "whether the archive is there"),
      ("repository", "string", "what would be fetched of the repository"), ("heldRev", "string?", "the revision in the archive"),
      ("newestRev", "string?", "the server's revision"),
      ("blobs", Object(("listed", "int?", "blobs that the server lists"), ("wanted", "int", "blobs to fetch"),
                       ("declaredBytes", "int", "their bytes, as far as declared"), ("unsized", "int", "those of unknown size")),
       "the blobs"),
      ("warnings", Array("string"), "what is odd"))
event("finished", "An account is backed up.", ACCOUNT, FILE,
      ("outcome", Enum("up-to-date", "recent", "complete", "incomplete"), "what came of it"),
      ("bytesAdded", "int", "by how many bytes the archive grew"), ("bytes", "int", "its size"),
      ("healed", "bool", "whether damaged sections were written again"), *DAMAGE,
      ("lacksPrivateData", "bool", "whether private data was asked for and did not all come"),
      ("milliseconds", "int", "how long it took"), HEAD, *SNAPSHOT_FIELDS,
      ("missing", Array(Object(*MISSING_FIELDS)), "blobs that are missing"),
      ("identityChanges", Array("string"), "what is new about who the account is: handle, server, key"),
      ("warnings", Array("string"), "what is odd"))
event("failed", "An account was not backed up.", ACCOUNT, ("error", "string", "why"), ("exitStatus", "int", "the exit status for it"))
event("summary", "All accounts are done with.", *[(name, "int", text) for name, text in (
    ("complete", "complete"), ("upToDate", "up to date"), ("recent", "skipped as recent"), ("incomplete", "incomplete"),
    ("recentIncomplete", "of the recent ones, incomplete"),
    ("planned", "planned"), ("failed", "failed"), ("skipped", "skipped"), ("malformed", "entries that name no account"),
    ("bytesAdded", "bytes added to archives"))])


def document(name, variants):
    """The JSON Schema of all forms of an object."""
    about = (("schema", Enum(f"carpack.{name}"), "what the object is"), ("version", "int", "1"))
    bodies = [object_schema(about + fields) for _, fields in variants]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"carpack.{name}",
        **(bodies[0] if len(bodies) == 1 else {"oneOf": bodies}),
    }


def markdown():
    lines = [
        "# JSON", "",
        "<!-- Written by Scripts/json-schemas.py; change that and run `make schemas`. -->", "",
        "With `--json` every verb writes results as JSON to standard output: one object a line, for one archive and for many,",
        "and for events. `--pretty` indents them for people. Each object says what it is: `schema` is `carpack.NAME`, with the",
        "JSON Schema in [schemas/](schemas/); `version` is 1. The version is raised when a field goes or changes its meaning; a",
        "new field may come at any time. Sizes are integers, in bytes; times are RFC 3339; CIDs are text. A field that is not",
        "optional is always there, and null if nothing is known.", "",
        "Standard error has one object a line as well: an [error](#carpackerror), or a [message](#carpackmessage).",
        "The exit status is the same with and without `--json`.", "",
    ]
    for name, variants in SCHEMAS.items():
        lines += [f"## carpack.{name}", ""]
        for text, fields in variants:
            lines += [text, "", "| field | type | meaning |", "|---|---|---|", *rows(fields), ""]
    lines += ["## Shared objects", ""]
    for kind, title in SHARED.items():
        lines += [f"### {title}", "", "| field | type | meaning |", "|---|---|---|", *rows(kind.fields), ""]
    return "\n".join(lines)


def main():
    docs = pathlib.Path("Docs")
    folder = docs / "schemas"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.schema.json"):
        old.unlink()
    for name, variants in SCHEMAS.items():
        text = json.dumps(document(name, variants), indent=2, ensure_ascii=False)
        (folder / f"{name}.schema.json").write_text(text + "\n")
    (docs / "JSON.md").write_text(markdown())


if __name__ == "__main__":
    main()
