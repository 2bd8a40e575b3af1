"""What `tests/hub_server.py` keeps and answers: repositories in memory, and one function for each address."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

DATE = "2026-01-01T00:00:00.000Z"
LFS = (".parquet", ".safetensors", ".bin", ".arrow", ".npz", ".gz", ".png")


@dataclass(frozen=True)
class Blob:
    """One stored file: SHA-256 of its content, the id git would give it, size, and whether it went through LFS."""

    sha256: str
    git_id: str
    size: int
    lfs: bool

    def entry(self, path: str) -> dict[str, Any]:
        found = {"type": "file", "oid": self.git_id, "size": self.size, "path": path}
        return {**found, "lfs": {"oid": self.sha256, "size": self.size, "pointerSize": 134}} if self.lfs else found


@dataclass
class Repo:
    """Commits (id -> (title, files)) and names that point at them."""

    private: bool
    commits: dict[str, tuple[str, dict[str, Blob]]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def resolve(self, revision: str) -> str:
        sha = self.branches.get(revision) or self.tags.get(revision) or revision
        if sha not in self.commits:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    def add(self, branch: str, title: str, files: dict[str, Blob]) -> str:
        state = [title, len(self.commits), sorted((path, blob.sha256) for path, blob in files.items())]
        sha = hashlib.sha1(json.dumps(state).encode()).hexdigest()
        self.commits[sha] = (title, files)
        self.branches[branch] = sha
        return sha


class Refusal(Exception):
    """An answer with an error status and the Hub's error code."""

    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


Route = Callable[..., Any]
ROUTES: list[tuple[str, re.Pattern[str], bool, Route]] = []
KIND = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
REPO = r"/(?:(?P<kind>dataset|space)s/)?(?P<name>[^/]+/[^/]+)"


def route(method: str, pattern: str, *, writes: bool = False) -> Callable[[Route], Route]:
    def add(function: Route) -> Route:
        ROUTES.append((method, re.compile(pattern), writes, function))
        return function

    return add


@route("GET", "/api/whoami-v2")
def _whoami(request: Any) -> Any:
    return {"type": "user", "name": "tester", "orgs": [], "auth": {"accessToken": {"role": "write"}}}


@route("POST", "/api/validate-yaml")
def _validate(request: Any) -> Any:
    return {"errors": [], "warnings": []}


@route("POST", "/api/repos/create", writes=True)
def _create(request: Any) -> Any:
    asked = json.loads(request.body)
    kind, name = asked.get("type") or "model", f"{asked.get('organization') or 'tester'}/{asked['name']}"
    url = f"{request.hub.url}/{'' if kind == 'model' else kind + 's/'}{name}"
    if (kind, name) in request.hub.repos:
        text = json.dumps({"error": "You already created this model repo", "url": url}).encode()
        return request.reply(409, text, {"Content-Type": "application/json"})
    repo = request.hub.repos[kind, name] = Repo(asked.get("visibility") == "private" or bool(asked.get("private")))
    repo.add("main", "initial commit", {".gitattributes": request.hub.store(b"*.bin filter=lfs\n", False)})
    return {"url": url, "name": name, "id": name}


@route("GET", KIND + r"(?:/revision/(?P<revision>[^/]+))?")
def _info(request: Any, kind: str, name: str, revision: str | None) -> Any:
    repo = request.hub.repo(kind, name)
    sha = repo.resolve(revision or "main")
    files = [
        {"rfilename": path, "size": blob.size, "blobId": blob.git_id}
        for path, blob in sorted(repo.commits[sha][1].items())
    ]
    return {
        "_id": "0", "id": name, "modelId": name, "author": name.split("/")[0], "sha": sha, "lastModified": DATE,
        "createdAt": DATE, "private": repo.private, "gated": False, "disabled": False, "downloads": 0, "likes": 0,
        "tags": [], "siblings": files,
    }  # fmt: skip


@route("GET", KIND + r"/tree/(?P<revision>[^/]+)(?:/(?P<path>.*))?")
def _tree(request: Any, kind: str, name: str, revision: str, path: str | None) -> Any:
    repo = request.hub.repo(kind, name)
    recursive = request.query.get("recursive", ["false"])[0].lower() in ("true", "1")
    prefix = f"{path.strip('/')}/" if path else ""
    found: dict[str, dict[str, Any]] = {}
    for file, blob in sorted(repo.commits[repo.resolve(revision)][1].items()):
        if not file.startswith(prefix):
            continue
        *folders, last = file.removeprefix(prefix).split("/")
        for depth in range(1, (len(folders) if recursive else min(1, len(folders))) + 1):
            folder = prefix + "/".join(folders[:depth])
            oid = hashlib.sha1(folder.encode()).hexdigest()
            found[folder] = {"type": "directory", "oid": oid, "size": 0, "path": folder}
        if recursive or not folders:
            found[file] = blob.entry(prefix + "/".join([*folders, last]))
    if path and not found:
        raise Refusal(404, "EntryNotFound", "Entry not found")
    return list(found.values())


@route("POST", KIND + r"/paths-info/(?P<revision>[^/]+)")
def _paths_info(request: Any, kind: str, name: str, revision: str) -> Any:
    repo = request.hub.repo(kind, name)
    files = repo.commits[repo.resolve(revision)][1]
    is_json = "json" in (request.headers.get("Content-Type") or "")
    asked = (json.loads(request.body) if is_json else parse_qs(request.body.decode())).get("paths", [])
    wanted = [asked] if isinstance(asked, str) else asked
    return [files[path.strip("/")].entry(path.strip("/")) for path in wanted if path.strip("/") in files]


@route("GET", KIND + "/refs")
def _refs(request: Any, kind: str, name: str) -> Any:
    repo = request.hub.repo(kind, name)
    return {
        "branches": [{"name": n, "ref": f"refs/heads/{n}", "targetCommit": sha} for n, sha in repo.branches.items()],
        "tags": [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": sha} for n, sha in repo.tags.items()],
        "converts": [],
    }


@route("GET", KIND + r"/commits/(?P<revision>[^/]+)")
def _commits(request: Any, kind: str, name: str, revision: str) -> Any:
    commits = reversed(request.hub.repo(kind, name).commits.items())
    return [{"id": sha, "title": title, "message": "", "authors": [], "date": DATE} for sha, (title, _) in commits]


@route("POST", KIND + r"/tag/(?P<ref>.+)", writes=True)
def _make_tag(request: Any, kind: str, name: str, ref: str) -> Any:
    repo = request.hub.repo(kind, name)
    repo.tags[json.loads(request.body)["tag"]] = repo.resolve(ref)
    return {}


@route("POST", KIND + r"/preupload/(?P<revision>[^/]+)", writes=True)
def _preupload(request: Any, kind: str, name: str, revision: str) -> Any:
    request.hub.repo(kind, name).resolve(revision)
    modes = {True: "lfs", False: "regular"}
    asked = json.loads(request.body)["files"]
    return {
        "files": [
            {"path": f["path"], "shouldIgnore": False, "uploadMode": modes[f["path"].endswith(LFS)]} for f in asked
        ]
    }


@route("POST", KIND + r"/commit/(?P<revision>[^/]+)", writes=True)
def _commit(request: Any, kind: str, name: str, revision: str) -> Any:
    repo, hub = request.hub.repo(kind, name), request.hub
    parent = repo.resolve(revision)
    files, title = dict(repo.commits[parent][1]), "commit"
    for line in request.body.splitlines():
        step = json.loads(line)
        key, value = step["key"], step["value"]
        if key == "header":
            title = value.get("summary", title)
            if value.get("parentCommit") not in (None, parent):
                raise Refusal(412, "", "A commit has happened since. Please refresh and try again.")
        elif key == "file":
            files[value["path"]] = hub.store(base64.b64decode(value["content"]), False)
        elif key == "lfsFile":
            files[value["path"]] = hub.store((hub.blobs / value["oid"]).read_bytes(), True)
        elif key == "deletedFile":
            files.pop(value["path"], None)
    sha = repo.add(revision, title, files)
    return {"success": True, "commitOid": sha, "commitUrl": f"{hub.url}/{name}/commit/{sha}", "hookOutput": ""}


@route("POST", REPO + r"\.git/info/lfs/objects/batch", writes=True)
def _lfs_batch(request: Any, kind: str | None, name: str) -> Any:
    def answer(item: dict[str, Any]) -> dict[str, Any]:
        upload = {"upload": {"href": f"{request.hub.url}/lfs/{item['oid']}"}}
        known = (request.hub.blobs / item["oid"]).exists()
        return {"oid": item["oid"], "size": item["size"], **({} if known else {"actions": upload})}

    return {"transfer": "basic", "objects": [answer(item) for item in json.loads(request.body)["objects"]]}


@route("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})")
def _lfs_put(request: Any, oid: str) -> Any:
    if request.hub.store(request.body, True).sha256 != oid:
        raise Refusal(422, "", "the content does not have this SHA-256")
    return {}


@route("GET", REPO + r"/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
def _resolve(request: Any, kind: str | None, name: str, revision: str, path: str) -> None:
    repo = request.hub.repo(kind or "model", name)
    sha = repo.resolve(revision)
    blob = repo.commits[sha][1].get(path)
    if blob is None:
        raise Refusal(404, "EntryNotFound", "Entry not found")
    content = (request.hub.blobs / blob.sha256).read_bytes()
    headers = {
        "ETag": f'"{blob.sha256 if blob.lfs else blob.git_id}"',
        "X-Repo-Commit": sha,
        "X-Linked-Size": str(blob.size),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
    }
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or "")
    if asked is None:
        return request.reply(200, content, headers)
    start, stop = int(asked[1]), min(int(asked[2] or blob.size - 1), blob.size - 1)
    if start >= blob.size:
        raise Refusal(416)
    span = {"Content-Range": f"bytes {start}-{stop}/{blob.size}"}
    return request.reply(206, content[start : stop + 1], {**headers, **span})
