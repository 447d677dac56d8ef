# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the examples in BIN in a fresh folder WORK and checks their output.
function(run expected)  # run(<regex of the output> <program> <argument>...)
  list(POP_FRONT ARGN program)
  execute_process(COMMAND ${BIN}/${program} ${ARGN} WORKING_DIRECTORY ${WORK} TIMEOUT 60
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  message(STATUS "${program} ${ARGN}\n${output}")
  if(NOT result EQUAL 0 OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR
      "found result ${result}, the output above and '${error}', expected 0 and '${expected}'")
  endif()
endfunction()

function(run_killed program)  # it must end by its own SIGKILL
  execute_process(COMMAND ${BIN}/${program} ${ARGN} WORKING_DIRECTORY ${WORK} TIMEOUT 60
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT result MATCHES "[Kk]illed")
    message(FATAL_ERROR "found result '${result}', '${output}' and '${error}' of ${program}, \
expected that it was killed")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run("total 100000, expected 100000" bank bank.pool)
run("total 100000, expected 100000" bank bank.pool)
run("" kv kv.pool put pear 2)
run("" kv kv.pool put apple 1)
run("" kv kv.pool put plum "3 or 4")
run("^3 or 4\n$" kv kv.pool get plum)
run("" kv kv.pool del apple)
run("^pear\t2\nplum\t3 or 4\n$" kv kv.pool list)
run("^plum\t3 or 4\n$" kv kv.pool list pi)
run("2000 answers, journal of 2002 entries" receipts journal.pool)
run("2000 answers, journal of 4004 entries" receipts journal.pool)
run("^0 sessions found\nuser 7, newest first: def abc\n2 expired, 1 left\n$" sessions
  sessions.pool)
run("^1 sessions found\n.*2 expired, 1 left\n$" sessions sessions.pool)
run_killed(jobs jobs.pool kill)
run("^[1-9][0-9]* jobs were left\n[0-9]+ added = [0-9]+ done \\+ [0-9]+ dead letters\n$" jobs
  jobs.pool)
run("^0 jobs were left\n" jobs jobs.pool)
run_killed(order_book book.pool kill)
run("^[0-9]+ found resting, sums right\nentered .*: right\n$" order_book book.pool)
run("^[0-9]+ found resting, sums right\nentered .*: right\n$" order_book book.pool)
run("^1 3 5 7 9 \n$" rewind_list list.pool)
run("^3 7 0 2 4 6 8 \n$|^3 7 1 3 5 7 9 \n$" rewind_list list.pool)
run("^1 0 24\n$" softwrap_region region.pool)
run("^2 0 48\n$" softwrap_region region.pool)
run("^10000 transfers, [0-9]+ aborted, total 1000\n$" dudetm_transfer bank1.pool)
run("^10000 transfers, [0-9]+ aborted, total 1000\n$" dudetm_transfer bank1.pool)
run("^1: one\n$" c_example notes.pool one)
run("^2: two\n1: one\n$" c_example notes.pool two)

# perdure dump | load | dump: equal, and the program opens the loaded pool and finds its data.
function(tool output)
  execute_process(COMMAND ${PERDURE} ${ARGN} WORKING_DIRECTORY ${WORK} TIMEOUT 60
    RESULT_VARIABLE result OUTPUT_FILE ${WORK}/${output} ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "found result ${result} and '${error}' of perdure ${ARGN}, expected 0")
  endif()
endfunction()

function(round_trip pool expected)
  # The last one keeps the numbers of rows, from which add() makes keys.
  foreach(kind IN ITEMS "" --jsonl --indexes)
    set(lines)
    if(kind STREQUAL --jsonl)
      set(lines --jsonl)
    endif()
    file(REMOVE ${WORK}/loaded.pool)
    tool(schema schema --text ${pool})
    tool(before dump ${kind} ${pool})
    tool(said load ${lines} --schema schema loaded.pool before)
    tool(after dump ${kind} loaded.pool)
    tool(said check loaded.pool)
    execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${WORK}/before ${WORK}/after
      RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "found two dumps of ${pool} that differ, before and after a load")
    endif()
  endforeach()
  list(POP_FRONT ARGN program)
  run("${expected}" ${program} loaded.pool ${ARGN})
  tool(said check loaded.pool)
endfunction()

if(PERDURE)
  round_trip(bank.pool "total 100000, expected 100000" bank)
  round_trip(kv.pool "^pear\t2\nplum\t3 or 4\n$" kv list)
  round_trip(journal.pool "2000 answers, journal of 6006 entries" receipts)
  round_trip(sessions.pool "^1 sessions found\n.*2 expired, 1 left\n$" sessions)
  round_trip(jobs.pool "^0 jobs were left\n" jobs)
  round_trip(book.pool "^[0-9]+ found resting, sums right\nentered .*: right\n$" order_book)
endif()

# Version 2 takes the pools over.
run("index owner\\+device is new, its entries are made\n" sessions_v2 plan sessions.pool)
run_killed(sessions_v2 kill sessions.pool)
run("owner 7 has 2 sessions, 1 on a phone\n$" sessions_v2 open sessions.pool)
run("dead: the program's steps make its rows" jobs_v2 plan jobs.pool)
run_killed(jobs_v2 kill jobs.pool)
run("done: 0 mails, 1 bill\n$" jobs_v2 open jobs.pool)
run("bids: index owner is dropped\n" order_book_v2 plan book.pool)
run_killed(order_book_v2 kill book.pool)
run("right: [1-9][0-9]* resting\n$" order_book_v2 open book.pool)
file(REMOVE_RECURSE ${WORK})
