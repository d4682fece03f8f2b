"""talktree keeps conversations in one SQLite file: trees of messages, with summaries, search, and views for models.

>>> import talktree
>>> with talktree.Store() as store:  # Store("bot.db") keeps it in a file
...     chat = store.session("telegram:4711")
...     question = chat.append({"role": "user", "text": "Can we deploy on Friday?"}).id
...     answer = chat.append({"role": "assistant", "text": "Yes, after the backup."}).id
...     _ = chat.append_to(question, {"role": "assistant", "text": "Rather on Monday."})  # a branch
...     chat.checkout(answer)  # back on the first; stored, survives a restart
...     [message.text for message in chat.history()]
['Can we deploy on Friday?', 'Yes, after the backup.']

`talktree.aio` has the same names for asyncio and trio, `talktree.openai` a session for the OpenAI Agents SDK.
"""

from . import model as model
from ._native import Subscription as Subscription
from .blocks import Block as Block
from .blocks import BlockInfo as BlockInfo
from .blocks import Document as Document
from .blocks import Drift as Drift
from .blocks import EntryInfo as EntryInfo
from .blocks import EntryVersion as EntryVersion
from .blocks import SearchProvider as SearchProvider
from .blocks import SkillProvider as SkillProvider
from .blocks import WriteProvider as WriteProvider
from .compaction import AddedCompaction as AddedCompaction
from .compaction import BranchSummaryPlan as BranchSummaryPlan
from .compaction import Compacted as Compacted
from .compaction import Compaction as Compaction
from .compaction import CompactionOptions as CompactionOptions
from .compaction import CompactionPlan as CompactionPlan
from .compaction import CompactionPolicy as CompactionPolicy
from .compaction import CompactionStatus as CompactionStatus
from .compaction import CompactionWindow as CompactionWindow
from .compaction import Nothing as Nothing
from .compaction import RangeSummary as RangeSummary
from .compaction import RequestTokens as RequestTokens
from .compaction import Summary as Summary
from .compaction import TokenCounter as TokenCounter
from .compaction import WindowUsage as WindowUsage
from .context import Context as Context
from .errors import BlockBusyError as BlockBusyError
from .errors import BlockCannotError as BlockCannotError
from .errors import BlockExistsError as BlockExistsError
from .errors import BlockKeyedError as BlockKeyedError
from .errors import BlockOverLimitError as BlockOverLimitError
from .errors import BlockReadOnlyError as BlockReadOnlyError
from .errors import BusyError as BusyError
from .errors import CallbackError as CallbackError
from .errors import ClosedError as ClosedError
from .errors import CompactionInProgressError as CompactionInProgressError
from .errors import CompactionPolicyError as CompactionPolicyError
from .errors import ContextFullError as ContextFullError
from .errors import CorruptError as CorruptError
from .errors import DiskFullError as DiskFullError
from .errors import Error as Error
from .errors import ForkedError as ForkedError
from .errors import HardLinkedError as HardLinkedError
from .errors import HeadMovedError as HeadMovedError
from .errors import ImportFileError as ImportFileError
from .errors import InsideSummaryError as InsideSummaryError
from .errors import InterruptedError as InterruptedError
from .errors import InvalidNameError as InvalidNameError
from .errors import IoError as IoError
from .errors import JsonError as JsonError
from .errors import MessageTooLargeError as MessageTooLargeError
from .errors import NewerStoreError as NewerStoreError
from .errors import NoAnswerError as NoAnswerError
from .errors import NoOwnerError as NoOwnerError
from .errors import NoSummarizerError as NoSummarizerError
from .errors import NotAncestorError as NotAncestorError
from .errors import NotAStoreError as NotAStoreError
from .errors import NothingVisibleError as NothingVisibleError
from .errors import OlderStoreError as OlderStoreError
from .errors import PlanOfAnotherError as PlanOfAnotherError
from .errors import ProviderError as ProviderError
from .errors import ReadOnlyError as ReadOnlyError
from .errors import SessionExistsError as SessionExistsError
from .errors import SessionFullError as SessionFullError
from .errors import SessionInTrashError as SessionInTrashError
from .errors import SessionRemovedError as SessionRemovedError
from .errors import StaleError as StaleError
from .errors import StorageError as StorageError
from .errors import StoreFullError as StoreFullError
from .errors import StoreMovedError as StoreMovedError
from .errors import SummarizerError as SummarizerError
from .errors import SummaryRefusedError as SummaryRefusedError
from .errors import TokenCounterError as TokenCounterError
from .errors import TooLargeError as TooLargeError
from .errors import TooManyBlocksError as TooManyBlocksError
from .errors import UnknownBlockError as UnknownBlockError
from .errors import UnknownCallError as UnknownCallError
from .errors import UnknownCompactionError as UnknownCompactionError
from .errors import UnknownMessageError as UnknownMessageError
from .errors import UnknownSessionError as UnknownSessionError
from .errors import UnknownVersionError as UnknownVersionError
from .errors import UnreadableLogError as UnreadableLogError
from .errors import UnsupportedError as UnsupportedError
from .importing import ImportRecord as ImportRecord
from .importing import SessionImport as SessionImport
from .manager import Resumed as Resumed
from .manager import SessionManager as SessionManager
from .message import Message as Message
from .message import text_part as text_part
from .message import tool_call as tool_call
from .message import tool_error as tool_error
from .message import tool_result as tool_result
from .model import TruncateOptions as TruncateOptions
from .results import Alternative as Alternative
from .results import Appended as Appended
from .results import Binding as Binding
from .results import Damage as Damage
from .results import Deleted as Deleted
from .results import Event as Event
from .results import Found as Found
from .results import HeadEntry as HeadEntry
from .results import Hit as Hit
from .results import ImportReport as ImportReport
from .results import Label as Label
from .results import Note as Note
from .results import Page as Page
from .results import Recent as Recent
from .results import Retried as Retried
from .results import RowStat as RowStat
from .results import SessionDetails as SessionDetails
from .results import SessionHit as SessionHit
from .results import SessionInfo as SessionInfo
from .results import SessionPage as SessionPage
from .results import SessionsFound as SessionsFound
from .results import Snippet as Snippet
from .results import StoreStats as StoreStats
from .results import ToolStats as ToolStats
from .results import Updated as Updated
from .results import Verified as Verified
from .search import SearchSettings as SearchSettings
from .session import Path as Path
from .session import Session as Session
from .settings import SessionSettings as SessionSettings
from .store import Store as Store
from .store import estimate_tokens as estimate_tokens
from .tools import ToolCall as ToolCall
from .tools import Tools as Tools
from .usage import Cost as Cost
from .usage import Usage as Usage
from .usage import UsageRow as UsageRow
from .usage import UsageTotal as UsageTotal
