# SPDX-License-Identifier: BSD-3-Clause
"""The programs that find mutants: {name in the table: (target of the build, arguments)}."""

GTEST = ["--gtest_fail_fast", "--gtest_brief=1"]
PROGRAMS = {
    "explorer": ("perdure_explore", ["--first", "--seconds", "1000"]),
    "threads": ("crash_threads_test", ["--gtest_filter=*LosesNothing*", *GTEST]),
    "flush_all": ("medium_flush_all_test", [*GTEST]),
    "flush_all_threads": ("crash_flush_all_test", [*GTEST]),
    "damage": ("faults_damage_test", [*GTEST]),
    "control_words": ("faults_control_words_test", ["--gtest_filter=*OfTheLog*", *GTEST]),
    "fuzz": ("fuzz_pool_test", [*GTEST]),
    "add_catalog": ("api_add_catalog_test", [*GTEST]),
    "refusals": ("engine_refusal_test", [*GTEST]),
    "receipts": ("engine_receipt_test", [*GTEST]),
    "ring": ("log_ring_test", [*GTEST]),
    "redo": ("log_redo_test", [*GTEST]),
    "dependencies": ("log_dependencies_test", [*GTEST]),
    "shadow_htm": ("engine_shadow_htm_test", [*GTEST]),
    "combiner": ("papers_combiner_test", [*GTEST]),
    "persister": ("log_persister_test", [*GTEST]),
    "store_buffer": ("tm_store_buffer_test", [*GTEST]),
    "htm": ("tm_htm_test", [*GTEST]),
    "engine_htm": ("papers_htm_test", [*GTEST]),
    "stamps": ("papers_timestamps_test", [*GTEST]),
    "paging": ("papers_paging_test", [*GTEST]),
    "dudetm": ("papers_dudetm_test", [*GTEST]),
    "pointer_log": ("papers_pointer_log_test", [*GTEST]),
    "aavlt": ("papers_aavlt_test", [*GTEST]),
    "torn_log": ("papers_torn_log_test", [*GTEST]),
    "wrap_log": ("papers_wrap_log_test", [*GTEST]),
    "softwrap": ("papers_softwrap_test", [*GTEST]),
    "softwrap_crash": ("papers_softwrap_crash_test", [*GTEST]),
    "wrap_options": ("papers_wrap_options_test", [*GTEST]),
    "softwrap_rounds": ("papers_softwrap_rounds_test", [*GTEST]),
    "bppm": ("papers_bppm_test", [*GTEST]),
    "rewind_log": ("papers_rewind_log_test", [*GTEST]),
    "laws": ("conformance_laws_test", ["--gtest_filter=*DamageIsNamed*", *GTEST]),
    "rewind": ("papers_rewind_test", [*GTEST]),
    "room": ("engine_log_space_test", [*GTEST]),
    "settlement": ("papers_dudetm_checkpoint_test", [*GTEST]),
    "thread_logs": ("engine_thread_logs_test", [*GTEST]),
    "copy": ("tm_copy_test", [*GTEST]),
    "bias": ("tm_bias_test", [*GTEST]),
    "eio": ("faults_eio_test", [*GTEST]),
    "writer": ("engine_writer_test", [*GTEST]),
    "killed": ("crash_killed_test", [*GTEST]),
    "resident": ("engine_resident_test", [*GTEST]),
    "resident_threads": ("crash_resident_test", [*GTEST]),
    "trim": ("pool_trim_test", [*GTEST]),
    "header": ("pool_header_test", [*GTEST]),
    "raise": ("pool_raise_test", [*GTEST]),
    "trims": ("engine_trim_threads_test", [*GTEST]),
    "copies": ("api_evolve_crash_test", ["--gtest_filter=Linked*:*/LinkedCrash*", *GTEST]),
    "pointers": ("api_evolve_pointers_test", [*GTEST]),
    "shared_ring": ("engine_shared_ring_test", [*GTEST]),
    "snapshots": ("crash_snapshots_test", [*GTEST]),
    "snapshots_engine": ("engine_snapshots_test", [*GTEST]),
    "snapshots_checks": ("engine_snapshots_checks_test", [*GTEST]),
    "versions": ("engine_versions_test", [*GTEST]),
    "log_cursor": ("log_cursor_test", [*GTEST]),
    "stream": ("replication_stream_test", [*GTEST]),
    "primary": ("replication_primary_test", [*GTEST]),
    "standby": ("replication_standby_test", [*GTEST]),
    "standbys": ("replication_standbys_test", [*GTEST]),
    "take_over": ("replication_take_over_test", [*GTEST]),
    "standby_explore": ("replication_standby_explore_test", [*GTEST]),
    "plain": ("plain_blocks_test", [*GTEST]),
    "plain_explore": ("plain_explore_test", [*GTEST]),
    "store_log": ("replication_store_log_test", [*GTEST]),
    "archive": ("backup_archive_test", [*GTEST]),
    "archive_order": ("backup_order_test", [*GTEST]),
    "archive_killed": ("backup_kill_test", [*GTEST]),
    "restore": ("backup_restore_test", [*GTEST]),
    "events": ("events_test", [*GTEST]),
    "events_durable": ("readers_durable_test", [*GTEST]),
    "checksums_changes": ("checksums_changes_test", [*GTEST]),
    "checksums_places": ("checksums_places_test", [*GTEST]),
    "checksums_scrub": ("checksums_scrub_test", [*GTEST]),
    "readers": ("readers_test", [*GTEST]),
    "readers_gate": ("readers_gate_test", [*GTEST]),
    "readers_durable": ("readers_durable_test", [*GTEST]),
}

# The engines whose names begin so run the code of a folder, and no others do. All other code is
# every engine's.
_ENGINES = {
    "papers/blurred/": ("bppm", "redo-"),
    "papers/dudetm/": ("dudetm", ),
    "papers/rewind/": ("rewind-", ),
    "papers/softwrap/": ("softwrap", ),
    "perdure/engine/shadow/": ("shadow", ),
    "perdure/engine/undo/": ("undo", ),
}


def engines_of(files, engines):
    """Those of the engines that run code of one of the files."""
    begin = []
    for file in files:
        names = [names for folder, names in _ENGINES.items() if file.startswith(folder)]
        if not names:
            return engines
        begin += names[0]
    return [engine for engine in engines if engine.startswith(tuple(begin))] or engines
