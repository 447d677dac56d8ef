// SPDX-License-Identifier: BSD-3-Clause
//
// What a block may call, by name: what the run-time does in its place, or what may run as it is.
// Thread safety: any thread.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>

#include <string>

namespace perdure::plain::pass {

/// The mark of functions that blocks of other files may call (plain/safe.h).
inline constexpr llvm::StringLiteral safe_mark = "perdure_transaction_safe";
/// plain::run()'s argument goes through this function, which exists nowhere: the pass takes the
/// call out, and a file that was compiled without it does not link.
inline constexpr llvm::StringLiteral block_mark = "perdure_plain_instrumented";

/// The name of a function's instrumented form, as GCC has it: a block may call a function of a file
/// that the other compiler has compiled.
std::string instrumented_name(llvm::StringRef name);

/// The function that is called; null where only a pointer is known. An alias that another file may
/// define otherwise is not looked through: then the result is that alias.
const llvm::GlobalValue* callee_of(const llvm::CallBase& call);
/// The run-time's function in place of this one; empty: it has none. A function of the file's own
/// with such a name has none.
std::string replacement_of(const llvm::GlobalValue& function);
/// Whether this function may run as it is: it does not touch the program's memory, or ends the
/// process.
bool runs_as_it_is(const llvm::GlobalValue& function);
/// Whether this is the destructor of an exception of the standard library's.
bool destroys_a_standard_exception(llvm::StringRef name);
/// Of a virtual function's thunk, the function's name; empty: it is none.
std::string behind_thunk(llvm::StringRef name);

}  // namespace perdure::plain::pass
