@_exported public import ATProtocol
@_exported public import Archive
@_exported public import Backup
@_exported public import IPLD
@_exported public import XRPC
