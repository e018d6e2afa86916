"""Loads LDIF into the directory of a domain controller that is not running, with the rights of the system.

samba-load.py SMB_CONF LDIF PROTECTED_LDIF GROUP COUNT: the second file holds changes to what the password module keeps to itself; the
group gets so many members more, of what every new directory holds: its configuration and its schema.
"""

import sys

import ldb
from samba import dsdb
from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB

configuration = LoadParm()
configuration.load(sys.argv[1])
directory = SamDB(url=configuration.private_path("sam.ldb"), session_info=system_session(), lp=configuration)


def load(path, controls):
    with open(path, encoding="utf-8") as file:
        for kind, message in directory.parse_ldif(file.read()):
            if kind == ldb.CHANGETYPE_NONE:
                directory.add(message, controls)
            else:
                directory.modify(message, controls)


def fill(group, count):
    bases = [directory.get_config_basedn(), directory.get_schema_basedn()]
    present = [str(entry.dn) for base in bases for entry in directory.search(base=base, scope=ldb.SCOPE_SUBTREE, attrs=["dn"])]
    if len(present) < count:
        sys.exit(f"a new directory holds only {len(present)} objects that can be members")
    message = ldb.Message(ldb.Dn(directory, group))
    message["member"] = ldb.MessageElement(present[:count], ldb.FLAG_MOD_ADD, "member")
    directory.modify(message)


directory.transaction_start()
load(sys.argv[2], [])
load(sys.argv[3], [f"local_oid:{dsdb.DSDB_CONTROL_BYPASS_PASSWORD_HASH_OID}:0"])
fill(sys.argv[4], int(sys.argv[5]))
directory.transaction_commit()
