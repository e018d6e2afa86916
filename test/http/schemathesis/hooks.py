"""Puts into valid requests what no description can tell, because the server alone knows it.

Requests that are meant to be refused stay as they are, and every check stays on.
"""

from datetime import datetime, timezone
from uuid import uuid4

import schemathesis

PASSWORD = "a lake of tin whistles"


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = case.operation.definition.raw["operationId"]
    if case.query:
        # What a page before has said.
        case.query.pop("cursor", None)
        # The days are those of a period, or from one to another.
        if operation == "getUsage" and "period" in case.query:
            case.query.pop("from", None)
            case.query.pop("to", None)
        elif operation == "getUsage" and ("from" in case.query or "to" in case.query):
            case.query.update({"from": "2026-11-01", "to": "2026-11-30"})
    if operation == "listWhoCan":
        # One of the two is needed.
        case.query = {"permission": "chat:write", **(case.query or {})}
    if case.headers:
        # What the resource was last shown with.
        case.headers.pop("If-Match", None)
        # The coverage phase makes up one without its quotes.
        if "If-None-Match" in case.headers:
            case.headers["If-None-Match"] = '"another"'
        # Each request is another thing to do.
        if "Idempotency-Key" in case.headers:
            case.headers["Idempotency-Key"] = str(uuid4())
    if not isinstance(case.body, dict):
        return
    case.body = known(case.body)
    if operation in ("createApiKey", "updateApiKey"):
        # The tenant asks for an expiry that is near enough.
        case.body.pop("expires_at", None)
        case.body.setdefault("expires_in_days", 30)
        case.body.pop("user_id", None)
    if operation == "changeUsers":
        # A role belongs to two of the actions.
        case.body.pop("role", None)
        if case.body.get("action") != "deactivate":
            case.body["role"] = "developer"
        if "ids" in case.body:
            case.body.pop("filter", None)
        else:
            case.body.setdefault("filter", {})
    if operation == "updatePolicy":
        # It stays as it was made.
        case.body.pop("global", None)
    if operation in ("createIssuer", "updateIssuer", "patchIssuer"):
        case.body = real_issuer(case.body)
    if operation == "revokeTokensBefore":
        # Not in the future.
        case.body.pop("time", None)
    if operation == "recordUsage":
        case.body["events"] = [recent(event) for event in case.body["events"]]
    if operation in ("createBudget", "previewBudget", "updateBudget", "patchBudget"):
        case.body = countable(case.body)
    if operation in ("createWebhook", "updateWebhook", "patchWebhook"):
        case.body = reachable(case.body)
    if operation in ("setPrices", "patchPrices"):
        case.body["prices"] = list({price["models"]: exact(price) for price in case.body["prices"]}.values())
    if operation in ("createUser", "recordUsage") and case.headers:
        # Both together must name the same.
        case.headers.pop("X-Tenant-ID", None)


def real_issuer(body):
    """The issuer with addresses and claims that have their form, and without keys, certificates and a login."""
    body = {name: value for name, value in body.items() if name not in ("jwks", "ca", "kind", "sso")}
    real = {
        "issuer": f"https://{uuid4()}.example",
        "jwks_uri": "https://login.example/keys",
        "required_claims": [{"claim": "hd", "in": ["*.example"]}],
        "users": {"default_roles": ["developer"]},
    }
    return {name: real[name] if name in real and value is not None else value for name, value in body.items()}


def recent(event):
    """The event as one of now, its tokens adding up."""
    event = {name: value for name, value in event.items() if name not in ("cached_tokens", "cache_write_tokens", "total_tokens")}
    return {**event, "time": datetime.now(timezone.utc).isoformat()}


def countable(budget):
    """The budget with a limit in its unit, of callers that there are."""
    budget = dict(budget)
    if "limit" in budget or "unit" in budget:
        unit = budget.setdefault("unit", "money")
        budget["limit"] = "1.5" if unit == "money" else 3
    if "applies_to" in budget:
        scope = known(budget["applies_to"])
        # Keys and users get their ids when they are created.
        budget["applies_to"] = {"tenant": True} if scope.keys() & {"keys", "users"} else scope
    return budget


def reachable(webhook):
    """The webhook with an address and events that there are."""
    real = {"url": f"https://{uuid4()}.example/events", "events": ["key.*", "budget.threshold"]}
    return {name: real.get(name, value) for name, value in webhook.items()}


def exact(price):
    """The price with amounts that its number of tokens can have."""
    return {name: value if name in ("models", "per") else "1.5" for name, value in price.items()}


def distinct(rules):
    """The rules, each with the globs that none before has."""
    seen = set()
    for rule in rules:
        models = [glob for glob in dict.fromkeys(rule["models"]) if glob not in seen]
        seen.update(models)
        if models:
            yield {**rule, "models": models}


def known(body):
    """The body with roles, zones, addresses and passwords that there are."""
    return {name: known_member(name, value) for name, value in body.items()}


def known_member(name, value):
    if name in ("roles", "attached_roles", "policies") and isinstance(value, list):
        return [known(each) if isinstance(each, dict) else "developer" for each in value]
    if name in ("password", "new_password"):
        return PASSWORD
    if name == "rate_limits" and isinstance(value, list):
        return list(distinct(value))
    if name == "timezone" and value is not None:
        return "Europe/Berlin"
    if name == "ip_address" and isinstance(value, dict):
        return {operator: ["10.0.0.0/8", "2001:db8::/32"] for operator in value}
    if name in ("conditions", "settings") and isinstance(value, dict):
        return known(value)
    return value
