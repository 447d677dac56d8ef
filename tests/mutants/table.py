# SPDX-License-Identifier: BSD-3-Clause
"""The mutants that are written down: tests of recovery left out, and orders of publication turned round.

Each is one or more edits of one file: a text that stands there exactly once, and what it becomes. MUTANT in it is false until the
mutant is switched on (schemata.py). `by`: who must find it, a program of gate.py's list. `explained`: why nothing can, where that is so.
Calls of flush and fence are not listed here: calls.py finds them by itself.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    edits: tuple
    by: str = "explorer"
    explained: str = ""


def _one(name, file, old, new, by="explorer", explained=""):
    return Mutant(name, "perdure/" + file, ((old, new),), by, explained)


def _left_out(name, file, old, by="explorer", explained=""):
    """A statement that is left out."""
    return _one(name, file, old, f"if (!MUTANT) {old}", by, explained)


def _early(name, file, before, statement, by="explorer", explained=""):
    """A statement that is made too early as well: in front of `before`."""
    return _one(name, file, before, f"if (MUTANT) {{ {statement} }}\n{before}", by, explained)


CHECKS = (
    _one("a record's checksum", "log/record.hpp", "return record_checksum(words, payload_words()", "return MUTANT || record_checksum(words, payload_words()"),
    _one("a record's checksum knows its position", "log/record.hpp", "fold.add(position, n);", "fold.add(MUTANT ? 0 : position, n);"),
    _one("a record's checksum knows its epoch", "log/record.hpp", "base::mix(epoch * 1024 + ring)", "base::mix((MUTANT ? 0 : epoch) * 1024 + ring)"),
    _one("a record of damaged size or kind", "log/ring.cpp", "return r.plausible(map.bytes / 2) &&", "return (MUTANT || r.plausible(map.bytes / 2)) &&",
         explained="what has a right checksum has a right size and kind; asked first, it spares most of the checksums, and each of this and the next keeps the scan inside the mapping"),
    _one("a record inside one lap", "log/ring.cpp", "r.position + r.bytes(unit) <= stop &&", "(MUTANT || r.position + r.bytes(unit) <= stop) &&",
         explained="a record that reaches into its own beginning has no right checksum"),
    _one("damage below a whole record (L10)", "log/ring.cpp", "if (whole(at(p))) return p;", "if (!MUTANT && whole(at(p))) return p;", by="damage"),
    _one("redo takes ids above X only", "log/ring.cpp", "if (r.id() > above_id) {", "if (MUTANT || r.id() > above_id) {",
         explained="the header names X and, in one, each ring's first record above it: none below is found"),
    _left_out("redo in the order of ids", "log/redo.cpp", "std::inplace_merge(",
              by="threads"),
    _one("redo without gaps (prefix)", "log/redo.cpp", "if (header.order == pool::Order::prefix &&", "if (!MUTANT && header.order == pool::Order::prefix &&",
         by="fuzz", explained="records follow each other by position, so that no record can be missing between two whole ones"),
    _one("redo inside home", "log/redo_team.cpp", "if (e.count == 0 || end > home_bytes_) {", "if (!MUTANT && (e.count == 0 || end > home_bytes_)) {", by="fuzz"),
    _one("redo of blocks that there are", "log/redo.cpp", "if (!pool::possible(", "if (!MUTANT && !pool::possible(", by="fuzz"),
    _one("undo takes ids above X only", "engine/undo/undo_impl.hpp", "if (r.id() > header.applied && r.transactions() != 0) commits", "if ((MUTANT || r.id() > header.applied) && r.transactions() != 0) commits",
         explained="as for redo: a ring's head lies behind what X covers"),
    _one("undo looks before it touches home", "engine/undo/undo_impl.hpp", "if (!whole(r))\n", "if (!MUTANT && !whole(r))\n", by="fuzz"),
    _one("the header's checksum", "pool/header.cpp", "const bool sound = header_checksum(copy) == copy.checksum;", "const bool sound = MUTANT || header_checksum(copy) == copy.checksum;"),
    _one("the newer copy of the header", "pool/header.cpp", "c.header = c.write_b_first ? *a : *b;", "c.header = c.write_b_first && !(MUTANT && b_good) ? *a : *b;",
         explained="F1: nothing is given up before both copies are written, so that recovery finds all it needs by the older one too"),
    _one("a header that contradicts itself", "pool/header.cpp", "if (why.empty()) return CopyState::valid;", "if (MUTANT || why.empty()) return CopyState::valid;", by="fuzz"),
    _one("a span made anew only where its word is another (H4)", "pool/heap_apply.cpp", "if (load_word(target, chunk) != span_word(cls)) {", "if (MUTANT || load_word(target, chunk) != span_word(cls)) {"),
    _one("bitmaps of spans that are there in the end", "pool/heap_apply.cpp", "if (!in_directory(offset) && in_bitmap(offset)) put", "if (!in_directory(offset) && (MUTANT || in_bitmap(offset))) put"),
)

SESSIONS = (
    _one("what recovery only reads is flushed (D4)", "log/redo.cpp", "use_ == Use::recovery && medium_.allocated(at, sizeof word)) {", "!MUTANT && use_ == Use::recovery && medium_.allocated(at, sizeof word)) {"),
    _left_out("a session raises the epoch", "pool/session.cpp", "++h.epoch;"),
    _left_out("a session is not clean", "pool/session.cpp", "h.clean = 0;"),
    _one("a session begins with empty rings", "pool/session.cpp", "std::fill(std::begin(h.ring_head), std::end(h.ring_head), 0);\n      h.append_unit",
         "if (!MUTANT) std::fill(std::begin(h.ring_head), std::end(h.ring_head), 0);\n      h.append_unit"),
    _one("growth is in the header", "pool/session.cpp", "if (Status s = publish([to](Header& h) { h.home_bytes = to; }); !s.ok()) return s;",
         "if (Status s = MUTANT ? Status() : publish([to](Header& h) { h.home_bytes = to; }); !s.ok()) return s;"),
    _one("first the copy that was not read (F1)", "pool/header.cpp", "const std::uint64_t order[2] = {write_b_first ? header_b : header_a, write_b_first ? header_a : header_b};",
         "const bool b_first = write_b_first && !MUTANT;\n  const std::uint64_t order[2] = {b_first ? header_b : header_a, b_first ? header_a : header_b};"),
    _one("closed when all is home", "engine/shadow/shadow_impl.hpp", "Status s = checkpoint();\n  background_.stop();", "Status s = MUTANT ? Status() : checkpoint();\n  background_.stop();"),
)

ORDERS = (
    _early("a ring's tail before its record is durable", "log/ring.hpp", "    meanwhile();", "tail_.store(position + n, std::memory_order_release);"),
    _early("an id durable before its record is", "log/persister.cpp", "    status = append(*record, kind, last);", "durable_.store(last, std::memory_order_release);", by="threads"),
    _early("a ring's room before the header (replay)", "engine/shadow/replay.cpp", "const Status s = core_.publish([&](pool::Header& h) {",
           "for (std::uint32_t i = 0; i < count_; ++i) rings_[i].release(settling_to_[i]);", by="threads"),
    _one("X is what a settlement began with", "engine/shadow/replay.cpp", "h.applied = settling_id_;", "h.applied = MUTANT ? reproduced_.load(std::memory_order_relaxed) : settling_id_;", by="settlement"),
    _one("a settlement ends when all of its lines are durable", "engine/shadow/replay.cpp", "if (!done) return true;", "if (!done && !MUTANT) return true;", by="settlement"),
    _one("replay up to what is quiet (held)", "engine/shadow/replay.cpp", "const std::uint64_t x = quiet_ ? quiet_() : tm::no_id;", "const std::uint64_t x = !MUTANT && quiet_ ? quiet_() : tm::no_id;", by="room"),
    _one("an op after a word in its span's bitmap (G1)", "log/combiner.cpp", "good = good && !has_line(first + i);", "good = good && (MUTANT || !has_line(first + i));", by="combiner"),
    _one("a word after an op in its span's bitmap (G1)", "log/combiner.cpp", "good = good && !in_bitmap(line);", "good = good && (MUTANT || !in_bitmap(line));", by="combiner"),
    _one("a group ends before what does not commute (G1)", "log/persister.cpp", "|| !combiner_.commutes(", "|| !MUTANT && !combiner_.commutes(", by="persister"),
    _one("the pool's version before the first combined record", "engine/shadow/shadow_impl.hpp", "if (form.group != 0) core_.file.require_feature(", "if (!MUTANT && form.group != 0) core_.file.require_feature(", by="dudetm"),
    _left_out("an eviction waits for writers (E1)", "engine/shadow/paging.cpp", "  quiesce();", by="paging"),
    _one("a writer meets an eviction's mark (E1)", "engine/shadow/paging.cpp", "if (now & evicting) return false;", "if (!MUTANT && (now & evicting) != 0) return false;", by="paging"),
    _left_out("a stamp is complete below what is pending (T1)", "tm/htm.hpp", "        all = std::min(all, domain.slots[i].pending.load(std::memory_order_acquire) - 1);", by="htm"),
    _one("a pending stamp is shown before the try (T1)", "tm/htm.hpp", "if (update) show_pending();", "if (!MUTANT && update) show_pending();", by="htm"),
    _one("the store buffer is drained in the try before its stamp is drawn, by more than a locked instruction (T1, D1)", "tm/htm.hpp",
         "try_.drain();  // T1, D1", "if (!MUTANT || holds_) try_.drain();", by="store_buffer"),
    _one("a stamp's tick is over when isolation ends (D2)", "tm/stamps.hpp", "while (ticks_() == tick) {}", "while (!MUTANT && ticks_() == tick) {}", by="htm"),
    _one("only complete stamps are taken (P5)", "log/persister.cpp", "front.id > up_to_ ||", "(!MUTANT && front.id > up_to_) ||", by="stamps"),
    _one("stamps are merged in order (P5)", "log/persister.cpp", "(found != nullptr && front.id > item.id)", "(!MUTANT && found != nullptr && front.id > item.id)", by="stamps"),
    _one("a pool of order held has no stamps", "api/open.cpp", "if (chosen->prefix_only && header.order == pool::Order::held)", "if (!MUTANT && chosen->prefix_only && header.order == pool::Order::held)", by="engine_htm"),
    _one("an eviction waits for Reproduce (E2)", "engine/shadow/paging.cpp", "reproduced() >= newest ?", "MUTANT || reproduced() >= newest ?", by="paging"),
    _left_out("a page that another swaps in is waited for (E4)", "engine/shadow/paging.cpp", "  if (paging_.in_frame(page)) paging_.frames_->wait(page);", by="paging"),
    _one("a page's entry after its frame's words (E4)", "engine/shadow/frames.cpp", "tm::store_word(to + i, tm::load_word(from + i));",
         "{ if (MUTANT && i == 0) table_.data()[page] = generation << 32 | (frame + 1ULL); tm::store_word(to + i, tm::load_word(from + i)); }", by="paging"),
    _one("a reader looks at a frame's entry again (E5)", "engine/shadow/frames.hpp", "if (__builtin_expect(now == seen, 1)) return word;", "if (MUTANT || now == seen) return word;", by="paging"),
    _one("an entry's generation (E5)", "engine/shadow/frames.cpp", "generation = generations_[frame]++;", "generation = MUTANT ? 0 : generations_[frame]++;", by="paging"),
    _left_out("bitmaps are touched with their ops (E3)", "engine/shadow/shadow.hpp", "        touch(pool::span_chunk_of(", by="dudetm"),
    _early("a ring's room before the header (checkpoint)", "engine/shadow/shadow_impl.hpp", "Status s = core_.publish([&](pool::Header& h) {",
           "for (std::uint32_t i = 0; i < ring_count_; ++i) rings_[i].release(heads[i]);", by="room"),
    _early("a ring's room before the header (undo)", "engine/undo/undo_impl.hpp", "Status s = core_.publish([&](pool::Header& h) {",
           "for (std::uint32_t i = 0; i < ring_count_; ++i) lines_[i].ring.release(heads[i]);", by="room"),
    _one("a ring's room up to X only (checkpoint)", "engine/shadow/shadow_impl.hpp", "heads[i] = rings_[i].position_after(x);", "heads[i] = MUTANT ? rings_[i].tail() : rings_[i].position_after(x);", by="threads"),
    _one("a ring's room up to X only (undo)", "engine/undo/undo_impl.hpp", "r.transactions() != 0 && r.id() > x) break;", "r.transactions() != 0 && !MUTANT && r.id() > x) break;", by="room"),
    _one("a ring's room up to what has ended (undo)", "engine/undo/undo_impl.hpp", "while (heads[i] < ended) {", "while (heads[i] < (MUTANT ? ring.tail() : ended)) {", by="shared_ring"),
    _one("X of ids that have finished (checkpoint)", "engine/shadow/shadow_impl.hpp", "start(held_ ? tm_.domain.quiet_id() :",
         "start(held_ ? (MUTANT ? tm_.domain.clock.load() : tm_.domain.quiet_id()) :", by="threads"),
    _one("X of ids that are durable (checkpoint)", "engine/shadow/shadow_impl.hpp", ": persister_.durable());\n  const auto clock",
         ": MUTANT ? tm_.domain.clock.load() : persister_.durable());\n  const auto clock",
         explained="every batch waits for ids drawn after X, before the header has X"),
    _one("X of ids that have finished (undo)", "engine/undo/undo_impl.hpp", "x = tm_.domain.quiet_id();", "x = MUTANT ? tm_.domain.clock.load() : tm_.domain.quiet_id();", by="room"),
    _one("a batch waits until it is durable", "engine/shadow/checkpoint.hpp", "batches_.front().clock <= durable()", "(MUTANT || batches_.front().clock <= durable())"),
    _one("the directory waits until it is durable", "engine/shadow/checkpoint.hpp", "if (directory_.back().clock > durable()) return Step::waiting;",
         "if (!MUTANT && directory_.back().clock > durable()) return Step::waiting;",
         explained="a batch of the rest, copied later, has waited for more; there is none only where large blocks were freed and nothing was stored"),
    _one("the directory behind what it names", "engine/shadow/checkpoint.hpp", "if (wrote) return Step::more;", "if (wrote && !MUTANT) return Step::more;"),
    _one("acknowledged when durable (prefix)", "engine/shadow/shadow.hpp", "engine_.wait(id).or_throw();", "if (!MUTANT) engine_.wait(id).or_throw();"),
    _one("acknowledged when what was read is durable", "engine/shadow/shadow.hpp", "durability != Durability::async) engine_.wait(seen).or_throw();",
         "durability != Durability::async && !MUTANT) engine_.wait(seen).or_throw();", by="receipts"),
    Mutant("isolation ends before the fence (held)", "perdure/engine/shadow/shadow.hpp",
           (("      // Before isolation ends: nobody builds", "      if (MUTANT) return;\n      // Before isolation ends: nobody builds"),
            ("    done();\n    if (__builtin_expect(failed, 0)) core_.refuse();",
             "    if (MUTANT) {\n      (void)ring_.append_fence(record_, log::RecordKind::commit, id, 1, [&] { count(bytes); });\n      if (!ops_.empty()) apply_heap_ops();\n    }\n"
             "    done();\n    if (__builtin_expect(failed, 0)) core_.refuse();")), by="threads"),
    Mutant("isolation ends before the fence (undo)", "perdure/engine/undo/undo_impl.hpp",
           (("  tm_.commit([&](std::uint64_t drawn) {\n    id = drawn;", "  const auto work = [&](std::uint64_t drawn) {\n    id = drawn;"),
            ("    if (!s.ok()) core_.lost(drawn, s);\n  });",
             "    if (!s.ok()) core_.lost(drawn, s);\n  };\n  if (MUTANT) {\n    tm_.commit([&](std::uint64_t drawn) { id = drawn; });\n    work(id);\n  } else {\n    tm_.commit(work);\n  }")),
           by="threads"),
    Mutant("old values before heap records (undo)", "perdure/engine/undo/undo_impl.hpp",
           (("  for (const auto& r : in_flight) each(r,", "  if (!MUTANT) for (const auto& r : in_flight) each(r,"),
            ("  heap.write();\n", "  heap.write();\n  if (MUTANT) for (const auto& r : in_flight) each(r, [&](const log::Entry& e) { home.words(e.offset, e.values, e.count); });\n")),
           explained="a block is handed out again only when the bits of who freed it are home: the old values have them, and no record changes a bitmap under a block in flight"),
)

# One line calls the medium for several: each of those by itself.
CALLERS = tuple(
    _one(f"the fence of {what}", "log/ring.hpp", "medium_->fence();", f"MUTANT && {test} ? Status() : medium_->fence();")
    for what, test in (("a commit record", "kind == RecordKind::commit && transactions != 0"), ("a group record", "kind == RecordKind::group"),
                       ("an undo record (U1)", "kind == RecordKind::undo"), ("the record of a rollback", "kind == RecordKind::commit && transactions == 0"))
) + (
    _left_out("the fence between a span's bitmap and its word (H4)", "pool/heap_apply.cpp", "target.fence(chunk * chunk_bytes, info.first);"),
    _left_out("the fence between bitmaps and directory (undo's recovery)", "pool/heap_apply.cpp", "home_.fence(directory_end_, end - directory_end_);"),
    _left_out("the flush of a part of redo", "log/redo_team.cpp", "    home_.flush();"),
    _left_out("the fence of a team's part of redo", "log/redo_team.cpp", "    if (me != 0 && masks.empty()) (void)medium.fence();", by="redo"),
    _left_out("the flush of what a scan found (D4)", "log/ring.cpp", "medium.flush_ring(map, position, n);"),
    _left_out("the fence of a team's part of a scan (D4)", "log/ring.cpp", "    if (me != 0) (void)medium.fence();", by="ring"),
    _left_out("the flush at the end of undo", "engine/undo/undo_impl.hpp", "home.flush();"),
    _left_out("the flush of undo's heap bits", "engine/undo/undo_impl.hpp", "home_writer_.flush();"),
    _one("the lines of a commit before its record (undo, U2)", "engine/undo/undo_impl.hpp", "Status s = flush_lines();\n    if (s.ok()) s = append(log::RecordKind::commit, drawn, 1);",
         "Status s = MUTANT ? Status() : flush_lines();\n    if (s.ok()) s = append(log::RecordKind::commit, drawn, 1);"),
    _one("the lines of a rollback before its record (undo)", "engine/undo/undo_impl.hpp", "Status s = flush_lines();\n    if (s.ok()) s = append(log::RecordKind::commit, engine_",
         "Status s = MUTANT ? Status() : flush_lines();\n    if (s.ok()) s = append(log::RecordKind::commit, engine_"),
)

# REWIND's log structures.
LISTS = (
    _left_out("lastTail before toAppend", "log/adll.cpp", "nvm_.synchronous(anchor_ + last_tail, after);", by="pointer_log"),
    _left_out("toAppend before the links", "log/adll.cpp", "nvm_.synchronous(anchor_ + to_append, node);", by="pointer_log"),
    _left_out("toRemove before the links", "log/adll.cpp", "nvm_.synchronous(anchor_ + to_remove, node);", by="pointer_log"),
    _left_out("toReplace before the links", "log/adll.cpp", "nvm_.synchronous(anchor_ + to_replace, head);", by="pointer_log"),
    _one("an append done again links to lastTail, not to the tail", "log/adll.cpp", "link(node, nvm_.value(anchor_ + last_tail));",
         "link(node, MUTANT ? tail() : nvm_.value(anchor_ + last_tail));", by="pointer_log"),
    _one("the anchor is looked at before it is followed (A4)", "log/adll.cpp", 'if (!nvm_.whole(word)) return broken(word, "has a damaged anchor");',
         'if (!MUTANT && !nvm_.whole(word)) return broken(word, "has a damaged anchor");', by="control_words"),
    _one("a node's links are looked at before they are followed (A4)", "log/adll.cpp", 'if (!nvm_.whole(word)) return broken(word, "has a damaged link");',
         'if (!MUTANT && !nvm_.whole(word)) return broken(word, "has a damaged link");', by="control_words"),
    _one("a bucket's index is looked at (A4)", "log/pointer_log.cpp", "if (!nvm_.whole(bucket + persistent_word))", "if (!MUTANT && !nvm_.whole(bucket + persistent_word))", by="control_words"),
    _one("an empty cell is no pointer", "log/pointer_log.cpp", "if (!nvm_.whole(cell({bucket, c})))", "if (!MUTANT && !nvm_.whole(cell({bucket, c})))", by="control_words",
         explained="a pointer that leads elsewhere leads to no record, whose own words name its place; asked so that damage is named by its cell"),
    _one("the root of an index is looked at", "log/aavlt.cpp", "if (!nvm_.whole(root_))", "if (!MUTANT && !nvm_.whole(root_))", by="control_words"),
    _one("a log's stamp is looked at", "log/rewind_log.cpp", "if (!ControlWord::whole(place_.identity,", "if (!MUTANT && !ControlWord::whole(place_.identity,", by="control_words"),
    _left_out("a record before its cell (optimized, P1)", "log/pointer_log.cpp", "nvm_.fence();  // P1\n", by="pointer_log"),
    _left_out("a group before its index (batch, P1, P3)", "log/pointer_log.cpp", "nvm_.fence();  // P1, P3", by="pointer_log"),
    _left_out("a group's cells before its index (batch, P3)", "log/pointer_log.cpp", "nvm_.start_again(cell({list_.tail(), persistent_}), pending() * 8);", by="pointer_log"),
    _one("a new bucket's cells are zero (optimized, P2)", "log/pointer_log.cpp", "if (group_ == 1)  // P2", "if (group_ == 1 && !MUTANT)  // P2", by="pointer_log"),
    _one("cells above the index do not count (batch)", "log/pointer_log.cpp", "if (group_ != 1) {\n    const", "if (group_ != 1 && !MUTANT) {\n    const", by="pointer_log"),
    _left_out("an index operation's records before its stores (V1)", "log/aavlt.cpp", "log_.persist();  // V1", by="aavlt"),
    _one("an index operation's stores before its END (V2)", "log/aavlt.cpp", "  for (const Write& w : writes_) nvm_.start(w.at, w.value);\n",
         "  if (MUTANT) log(AriesRecord::make(AriesType::end, ++lsn_, 0)), log_.persist();\n  for (const Write& w : writes_) nvm_.start(w.at, w.value);\n", by="aavlt"),
    _one("an index operation's END last (V3)", "log/aavlt.cpp", "for (auto at = log_.first(); at && !nvm_.failed(); at = log_.first()) {  // a failed medium removes nothing", "for (auto at = MUTANT ? log_.last() : log_.first(); at && !nvm_.failed(); at = MUTANT ? log_.last() : log_.first()) {", by="aavlt"),
    _one("an index operation that has ended is not undone", "log/aavlt.cpp", "if (!finished)\n", "if (!finished || MUTANT)\n", by="aavlt"),
    _left_out("old values before the records that have them are gone", "log/aavlt.cpp", "nvm_.fence();  // old values, before", by="aavlt"),
)

_MANAGER, _CHECKPOINT, _RECOVERY = "engine/rewind/manager.cpp", "engine/rewind/checkpoint.cpp", "engine/rewind/recovery.cpp"

# REWIND's transaction managers and their recovery.
REWIND = (
    _early("home before its record (WAL, K1)", _MANAGER, "  const std::uint64_t number = append(log, tx, std::move(r));", "store_now(tx, offset, value);", by="rewind"),
    _one("home before its record's group (batch, K1)", _MANAGER, "tx.waiting[n].number <= in_log; ++n)", "(MUTANT || tx.waiting[n].number <= in_log); ++n)", by="rewind"),
    _one("stores before END (K2)", _MANAGER, "if (how_.force || commit_id == 0) {  // K2", "if ((how_.force || commit_id == 0) && !MUTANT) {  // K2", by="rewind"),
    _one("a rollback's stores are written back (K2)", _MANAGER, "tx.flushes = true;\n", "tx.flushes = !MUTANT;\n", by="rewind"),
    _one("an interrupted rollback's stores are written back (K2)", _MANAGER, "tx.flushes = true;  // K2", "tx.flushes = !MUTANT;  // K2", by="rewind"),
    _one("a log's records are removed oldest first", _MANAGER, "    l.remove(log.found[i]);  // oldest", "    l.remove(log.found[MUTANT ? log.found.size() - i : i]);  // oldest", by="rewind"),
    _one("END is removed last (force, K3)", _MANAGER, "  for (std::size_t i = log.found.size(); i-- > 1;)\n", "  if (MUTANT) l.remove(log.found.front());\n  for (std::size_t i = log.found.size(); i-- > 1;)\n", by="rewind"),
    _one("the newest END stays (force)", _MANAGER, "  if (gone.record->commit_id() != 0) {\n", "  if (gone.record->commit_id() != 0 && !MUTANT) {\n", by="rewind"),
    _early("the header before home is written back (K4)", _CHECKPOINT, "  if (Status s = medium_.flush_all(); !s.ok()) return s;  // K4",
           "(void)file_.publish([&](pool::Header& h) { h.applied = x; });", by="rewind"),
    _one("records are removed when the header says so (K4)", _CHECKPOINT, "  const Status published = file_.publish([&]",
         "  const Status published = MUTANT ? Status() : file_.publish([&]", by="rewind"),
    _one("ENDs last at a checkpoint (K3)", _CHECKPOINT, "(c.record->type() != AriesType::end && ended", "((MUTANT || c.record->type() != AriesType::end) && ended", by="rewind"),
    _left_out("removals durable before a record's line is given again", "log/pointer_log.cpp", "nvm_.start_again(unsettled_, 64);\n  nvm_.fence();", by="rewind"),
    _one("what has ended is removed up to X only", _CHECKPOINT, "c.record->commit_id() <= x) ended", "(MUTANT || c.record->commit_id() <= x)) ended", by="rewind"),
    _one("heap bits before their records are removed (force)", "engine/rewind/rewind_impl.hpp", "s = core_.medium.fence();", "s = MUTANT ? Status() : core_.medium.fence();", by="rewind"),
    _left_out("room for a CLR (K5)", _MANAGER, "++log.kept;  // its CLR's", by="rewind"),
    _one("recovery leaves out what X covers", _RECOVERY, "return x.status == Xact::finished &&", "return !MUTANT && x.status == Xact::finished &&", by="rewind"),
    _one("what X covers has an id up to X", _RECOVERY, "&& x.commit_id <= header_.applied;", "&& (MUTANT || x.commit_id <= header_.applied);", by="rewind"),
    _one("redo without force", _RECOVERY, "Xact::finished ? !how_.force", "Xact::finished ? !how_.force && !MUTANT", by="rewind"),
    _one("CLRs of an interrupted rollback", _RECOVERY, " r.type() == AriesType::clr;", " !MUTANT && r.type() == AriesType::clr;", by="rewind"),
    _one("an UPDATE is undone once", _RECOVERY, "r.lsn() < x.undone) manager_.undo(", "(MUTANT || r.lsn() < x.undone)) manager_.undo(", by="rewind",
         explained="undone again, in the same order, home comes to the same; asked so that the log's room is enough however often recovery is cut off"),
    _left_out("records of several logs in the order of LSNs", _RECOVERY, "std::sort(records_.begin(), records_.end(), [](const Seen& a, const Seen& b) { return a.record.lsn() < b.record.lsn(); });", by="threads"),
    _one("a log of this epoch only", "log/rewind_log.cpp", "return ControlWord::value(stamp) == place_.epoch;", "return MUTANT || ControlWord::value(stamp) == place_.epoch;", by="rewind"),
    _one("recovery is rehearsed before it writes", _RECOVERY, "how_, Manager::Use::rehearsal);", "how_, MUTANT ? Manager::Use::real : Manager::Use::rehearsal);", by="control_words"),
    _early("the stamp before the empty anchor (W1)", "log/rewind_log.cpp", "  for (std::uint64_t word = 0; word < stamp_word; word += 8) nvm_.start(control_ + word, 0);", "nvm_.start_word(control_ + stamp_word, ControlWord::make(place_.identity, control_ + stamp_word, place_.epoch)); nvm_.fence();", by="rewind"),
    _one("a record's checksum (REWIND)", "log/rewind_log.cpp", "if (!record.whole(seed_, place) ||", "if ((!MUTANT && !record.whole(seed_, place)) ||", by="laws"),
    _left_out("the log's anchor durable as it was seen (D4)", "log/rewind_log.cpp", "nvm_.start_again(control_, LogArena::line);", by="rewind_log"),
    _left_out("a bucket durable as it was seen (D4)", "log/pointer_log.cpp", "nvm_.start_again(bucket, first_cell + end * 8);", by="rewind_log"),
    _one("who ends a group writes again what others appended", "log/pointer_log.cpp", "if (of_others_ || appender_ != base::thread_slot())", "if (!MUTANT && (of_others_ || appender_ != base::thread_slot()))", by="pointer_log"),
)

_TORN, _BPPM, _TRUNCATOR, _BRECOVERY = "log/torn_log.cpp", "engine/bppm/bppm_impl.hpp", "engine/bppm/truncator.cpp", "engine/bppm/recovery.cpp"
_BULK = "engine/bulk_persistence.hpp"

# Blurred Persistence's log and engine.
BLURRED = (
    _left_out("a transaction's records durable with its commit (T1)", _TORN, "flush(streamed_last_, tail_ + 1);", by="bppm"),
    _left_out("what stands before streamed lines durable with the commit (T1)", _TORN, "flush(run_, streamed_first_);", by="bppm"),
    _one("abort records durable with the next commit (T1)", _TORN, "if (aborts_since_commit_)\n", "if (aborts_since_commit_ && !MUTANT)\n", by="torn_log"),
    _left_out("an abort record each 64 blocks", _TORN, "for (std::uint64_t n = run_ + reach - 1; n < tail_; n += reach) {", by="torn_log"),
    _left_out("the rest of a lap is filled (T2)", _TORN, "fill(tail_, records_, TornRecord::filler(sense()));", by="torn_log"),
    _one("aborted runs are the lap's at its end (T2)", _TORN, "if (aborts_in_lap_)\n", "if (aborts_in_lap_ && !MUTANT)\n", by="torn_log"),
    _left_out("the filling before the next lap (T2)", _TORN, "if (Status s = medium_.fence(); !s.ok()) return s;  // T2", by="torn_log"),
    _left_out("a lap's beginning durable (T3)", _TORN, "flush(0, 1);", by="bppm"),
    _left_out("a lap's beginning before its records (T3)", _TORN, "return medium_.fence();  // T3", by="bppm",
              explained="the first transaction's own fence makes it durable with its commit, and without it none of the lap's records count: the fence is for the reader's sake"),
    _one("a log is zero, durably, before the header may say that the pool was closed (T5)", _TORN, "  return medium_.fence();  // T5", "  return MUTANT ? Status() : medium_.fence();  // T5", by="torn_log"),
    _one("a log is zero before a session (T5)", _TORN, "if (!zero) this->zero();", "if (!zero && !MUTANT) this->zero();", by="bppm"),
    _one("a backpointer is the last commit's", _TORN, "r.value() == last_commit &&\n", "(MUTANT || r.value() == last_commit) &&\n", by="torn_log",
         explained="the checksum in its ADDR has the last commit's place, too"),
    _one("holes are looked over no further than 64 blocks", _TORN, "std::min(n + reach + 1, records);", "MUTANT ? records : std::min(n + reach + 1, records);", by="torn_log",
         explained="an abort record further away whose backpointer is the last commit's leads to the same end: the limit spares reading"),
    _one("a torn-bit log of this epoch only", _TORN, "c.ours = ControlWord::value(epoch) == place.epoch;", "c.ours = MUTANT || ControlWord::value(epoch) == place.epoch;", by="bppm"),
    _one("a transaction's checksum (torn-bit log)", _TORN, "if (first == n || r.meta !=", "if (first == n || !MUTANT && r.meta !=", by="torn_log"),
    _one("a break with a transaction behind it", _TORN, "  if (follows) return", "  if (follows && !MUTANT) return", by="torn_log"),
    _one("X before the log is gone (V2)", _BULK, "if (Status s = note_x(x); !s.ok()) return s;", "if (Status s = MUTANT ? Status() : note_x(x); !s.ok()) return s;", by="bppm"),
    _one("home before X (V2)", _BULK, "if (Status s = core_.medium.flush_all(); !s.ok()) return s;", "if (Status s = MUTANT ? Status() : core_.medium.flush_all(); !s.ok()) return s;", by="bppm"),
    _left_out("home's lines written back (SYNC)", _BPPM, "      home_writer_.flush();\n", by="bppm"),
    _left_out("a thread's lines written back (ASYNC)", _TRUNCATOR, "medium_.flush(medium_.log_bytes() + line, medium::line_bytes);", by="bppm"),
    _one("recovery leaves out what X covers (V2)", _BRECOVERY, "const std::uint64_t x = std::max(header.applied, first.x);", "const std::uint64_t x = MUTANT ? header.applied : std::max(header.applied, first.x);", by="bppm"),
    _one("committed transactions in the order of TxIDs", _BRECOVERY, "return a.transaction.id < b.transaction.id; });", "return MUTANT ? a.transaction.id > b.transaction.id : a.transaction.id < b.transaction.id; });", by="bppm"),
    _left_out("a log durable as it was seen (D4)", _BRECOVERY, "TornLog::flush_scanned(medium, place, scan);", by="bppm"),
)

_WRAP, _WSCAN, _WHPP, _SOFT, _SIMPL, _LOCAL, _RETIRER, _SRECOVERY = (
    "log/wrap_log.cpp", "log/wrap_scan.cpp", "log/wrap_log.hpp", "engine/softwrap/softwrap.hpp", "engine/softwrap/softwrap_impl.hpp", "engine/softwrap/local_impl.hpp",
    "engine/softwrap/retirer.cpp", "engine/softwrap/recovery.cpp",
)

# SoftWrAP's log and engines.
SOFTWRAP = (
    _one("a wrap's sum", _WSCAN, "if (last.close(bucket_.line(n), less) != bucket_.stored_sum(n)) return 0;",
         "if (!MUTANT && last.close(bucket_.line(n), less) != bucket_.stored_sum(n)) return 0;", by="wrap_log"),
    _one("a wrap's check", _WSCAN, "return last.check(bucket_.line(n), at, bytes, less) == stored ?", "return MUTANT || last.check(bucket_.line(n), at, bytes, less) == stored ?", by="wrap_log"),
    _one("wraps behind a torn one", _WSCAN, "  if (wraps_follow(", "  if (!MUTANT && wraps_follow(", by="wrap_log"),
    _one("wraps that agree in 96 bits (WRAP-1)", _WSCAN, "if (run.bits >= enough &&", "if (run.bits >= (MUTANT ? 32 : enough) &&", by="wrap_log"),
    _one("one directly behind the other (WRAP-1)", _WSCAN, "before->last_line == n - c.lines &&", "(MUTANT || before->last_line == n - c.lines) &&", by="wrap_log"),
    _one("ids rise along a run (WRAP-1)", _WSCAN, "before->id < run.id)", "(MUTANT || before->id < run.id))", by="wrap_log"),
    _one("wraps of a bucket's own base (W2)", _WHPP, "return identity ^ base::mix(epoch ^ base::mix(base * 4 + bucket));",
         "return identity ^ base::mix(epoch ^ base::mix((MUTANT ? 0 : base) * 4 + bucket));", by="wrap_log"),
    _one("a log of wraps of this epoch only", _WSCAN, "c.ours = ControlWord::value(epoch) == place.epoch;", "c.ours = MUTANT || ControlWord::value(epoch) == place.epoch;", by="wrap_log"),
    _one("a log's damaged control words", _WSCAN, "  if (!all) c.damage", "  if (!all && !MUTANT) c.damage", by="wrap_log"),
    _one("ids grow in a bucket", _WSCAN, "    if (id <= last_id) {", "    if (!MUTANT && id <= last_id) {", by="wrap_log"),
    _one("a bucket begins again only when X covers it: aliasing for all (S2)", _RETIRER, "    if (Status s = house_.note_x(x); !s.ok()) return s;",
         "    if (Status s = MUTANT ? Status() : house_.note_x(x); !s.ok()) return s;", by="softwrap_crash"),
    _one("the same, local (S2)", _LOCAL, "return lines_.front()->log.note_x(x); }",
         "return MUTANT ? Status() : lines_.front()->log.note_x(x); }", by="softwrap"),
    _one("X is what was quiet at the switch (R1)", _RETIRER, "  if (Status s = retire(x); !s.ok()) return s;", "  if (Status s = retire(MUTANT ? house_.quiet() : x); !s.ok()) return s;", by="softwrap_rounds"),
    _one("home gets closed wraps' values only (R2)", _RETIRER, "  if (!wait_until(ended, long_wrap_ms_)) {", "  if (!MUTANT && !wait_until(ended, long_wrap_ms_)) {", by="softwrap_rounds"),
    _left_out("heap lines of wraps are flushed before X (R1)", _SIMPL, "if (s.ok()) engine_.retirer_->push(node_);", by="softwrap"),
    _one("spans have no aliases (S3)", _SOFT, "if (c.engine_.tables_.find(c.offset_of(line + i)) != nullptr) c.need(Need::drain);",
         "if (!MUTANT && c.engine_.tables_.find(c.offset_of(line + i)) != nullptr) c.need(Need::drain);", by="explorer"),
    _left_out("an aborted wrap's aliases are forgotten (S3)", _SIMPL, "for (std::uint64_t* const alias : added_) log::AliasTable::forget(alias);", by="explorer"),
    _left_out("an aborted wrap's objects are forgotten", _SIMPL, "for (const log::AliasPages::Change& c : objects_) log::AliasPages::forget(c);", by="softwrap_rounds"),
    _one("evicted wraps' tables are replayed from the logs", _RETIRER, "  if (Status s = house_.replay(); !s.ok()) return s;", "  if (Status s = MUTANT ? Status() : house_.replay(); !s.ok()) return s;", by="softwrap_rounds"),
    _one("recovery leaves out what X covers (wraps)", _SRECOVERY, "        if (w.id > x) closed.push_back({w, place});", "        if (MUTANT || w.id > x) closed.push_back({w, place});", by="softwrap"),
    _one("closed wraps in the order of their ids", _SRECOVERY, "return a.wrap.id < b.wrap.id; });", "return MUTANT ? a.wrap.id > b.wrap.id : a.wrap.id < b.wrap.id; });", by="softwrap"),
    _left_out("a log durable as it was seen (D4, wraps)", _SRECOVERY, "WrapLog::flush_scanned(medium, place, b, scan);", by="softwrap_crash"),
    _one("a log's epoch durable before wraps are (W2)", _WRAP, "  return medium_.fence();  // before the first wrap is durable in it", "  return MUTANT ? Status() : medium_.fence();", by="wrap_log"),
    _one("a log of the first form is none before it changes", "log/control_word.hpp", "return medium.fence();  // no log", "return MUTANT ? Status() : medium.fence();  // no log", by="wrap_log"),
    _one("a log's form is that of all of its first words", "log/control_word.hpp", "if (!whole(identity, p.place, p.word, LogForm::first)) return LogForm::checked;",
         "if (MUTANT || !whole(identity, p.place, p.word, LogForm::first)) return LogForm::checked;", by="wrap_log"),
    _one("X durable before a bucket begins again (W3)", _WRAP, "  return medium_.fence();  // W3", "  return MUTANT ? Status() : medium_.fence();  // W3", by="wrap_log"),
    _one("a base durable before wraps are streamed behind it: local (W2)", _LOCAL, "s = core_.medium.fence();", "s = MUTANT ? Status() : core_.medium.fence();", by="softwrap_crash",
         explained="its owner's next wrap makes it durable with its own fence; only a wrap of another thread, which takes a shared log between two steps of this one, needs it"),
)

_MARKS, _MARKED = "medium/line_marks.hpp", "medium/marked.hpp"

# What flush_all promises beside other threads.
FLUSH_ALL = (
    _one("flush_all writes back what another thread has not fenced (MARK-4)", _MARKS, "(mark == dirty || !over(mark))", "(mark == dirty || (!MUTANT && !over(mark)))", by="flush_all"),
    _one("the same, by power cuts under engines that publish after it", _MARKED, "if (of == slot) return true;", "if (MUTANT || of == slot) return true;", by="flush_all_threads"),
    _one("one fence begun is no fence over (MARK-3)", _MARKED, ".fences.load(std::memory_order_acquire));", ".fences.load(std::memory_order_acquire) + (MUTANT ? 1 : 0));", by="flush_all"),
    _one("a line is marked in flight before its write-back (MARK-2)", _MARKED, "    for (std::uint64_t l = first; l < first + count; ++l) marks_.start(l, mine);\n    write_back(mine.row, first, count);",
         "    if (MUTANT) write_back(mine.row, first, count), hardware().step(Step::take);\n    for (std::uint64_t l = first; l < first + count; ++l) marks_.start(l, mine);\n    if (!MUTANT) write_back(mine.row, first, count);", by="flush_all"),
    _one("a line is marked dirty after its data (MARK-1)", _MARKED, "    hardware().put(offset, src, n);\n    hardware().step(Step::mark);\n    marks_.mark(offset, n);",
         "    if (MUTANT) marks_.mark(offset, n), hardware().step(Step::mark);\n    hardware().put(offset, src, n);\n    hardware().step(Step::mark);\n    if (!MUTANT) marks_.mark(offset, n);", by="flush_all"),
    _left_out("flush_all fences (MARK-4)", _MARKED, "if (Status s = hardware().wait(true); !s.ok()) return s;", by="flush_all"),
)

MUTANTS = FLUSH_ALL + CHECKS + SESSIONS + ORDERS + CALLERS + LISTS + REWIND + BLURRED + SOFTWRAP
