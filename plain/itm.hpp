// SPDX-License-Identifier: BSD-3-Clause
//
// The calls that GCC (-fgnu-tm) makes for a block, by Intel's ABI for transactional memory
// (revision 1.1), which GCC's libitm implements, too. A program that links perdure::plain gets them
// here; it must not be linked with -fgnu-tm, which would take what is missing here from libitm.
// blocks.cpp has a block's begin and end, access.cpp its loads and stores, memory.cpp what it
// copies, allocates and frees, exceptions.cpp what it throws, clones.cpp the functions that it
// calls through pointers.
// Thread safety: all calls are a thread's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plain/frame.hpp"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the ABI's names
std::uint32_t perdure_plain_begin(std::uint32_t properties, const perdure::plain::Frame* frame);
std::uint32_t _ITM_beginTransaction(std::uint32_t properties, ...);
void _ITM_commitTransaction();
void _ITM_commitTransactionEH(void* exception);
[[noreturn]] void _ITM_abortTransaction(int reason);
void _ITM_changeTransactionMode(int mode);
int _ITM_inTransaction();
std::uint32_t _ITM_getTransactionId();
void _ITM_addUserCommitAction(void (*f)(void*), std::uint32_t id, void* arg);
void _ITM_addUserUndoAction(void (*f)(void*), void* arg);
int _ITM_versionCompatible(int version);
const char* _ITM_libraryVersion();
[[noreturn]] void _ITM_error(const void* where, int code);
void _ITM_dropReferences(void* at, std::size_t n);
void _ITM_LB(const void* at, std::size_t n);
void perdure_plain_fetch(void* to, const void* from, std::size_t n);
void* _ITM_malloc(std::size_t n);
void* _ITM_calloc(std::size_t count, std::size_t n);
void _ITM_free(void* block);
void* _ITM_cxa_allocate_exception(std::size_t n);
void _ITM_cxa_free_exception(void* object);
[[noreturn]] void _ITM_cxa_throw(void* object, void* type, void (*destructor)(void*));
[[noreturn]] void _ITM_cxa_rethrow();
void* _ITM_cxa_begin_catch(void* exception);
void _ITM_cxa_end_catch();
void _ITM_registerTMCloneTable(void* table, std::size_t entries);
void _ITM_deregisterTMCloneTable(void* table);
void* _ITM_getTMCloneOrIrrevocable(void* function);
void* _ITM_getTMCloneSafe(void* function);
// NOLINTEND(bugprone-reserved-identifier)
}
