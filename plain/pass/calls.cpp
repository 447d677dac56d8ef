// SPDX-License-Identifier: BSD-3-Clause
#include "plain/pass/calls.hpp"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/GlobalAlias.h>

namespace perdure::plain::pass {
namespace {

using llvm::StringRef;

// By the C ABI and C++'s.
const llvm::StringMap<StringRef>& named() {
  static const llvm::StringMap<StringRef> all = {
      {"malloc", "_ITM_malloc"},
      {"calloc", "_ITM_calloc"},
      {"free", "_ITM_free"},
      {"memcpy", "_ITM_memcpyRtWt"},
      {"memmove", "_ITM_memmoveRtWt"},
      {"memset", "_ITM_memsetW"},
      {"__cxa_allocate_exception", "_ITM_cxa_allocate_exception"},
      {"__cxa_free_exception", "_ITM_cxa_free_exception"},
      {"__cxa_throw", "_ITM_cxa_throw"},
      {"__cxa_rethrow", "_ITM_cxa_rethrow"},
      {"__cxa_begin_catch", "_ITM_cxa_begin_catch"},
      {"__cxa_end_catch", "_ITM_cxa_end_catch"},
  };
  return all;
}

// Whose instrumented form the run-time has (memory.cpp, text.cpp).
const llvm::StringSet<>& of_the_run_time() {
  static const llvm::StringSet<> all = {"_Znwm",
                                        "_Znam",
                                        "_ZnwmRKSt9nothrow_t",
                                        "_ZnamRKSt9nothrow_t",
                                        "_ZdlPv",
                                        "_ZdaPv",
                                        "_ZdlPvm",
                                        "_ZdaPvm",
                                        "_ZdlPvRKSt9nothrow_t",
                                        "_ZdaPvRKSt9nothrow_t",
                                        "memcmp",
                                        "bcmp",
                                        "memchr",
                                        "strlen",
                                        "strcmp",
                                        "strncmp",
                                        "strchr",
                                        "strcpy",
                                        "strncpy"};
  return all;
}

// What is left of the name behind a standard exception's; empty: it is none's.
StringRef of_a_standard_exception(StringRef name) {
  if (!name.consume_front("_ZNSt")) return {};
  for (const StringRef type :
       {"11logic_error", "11range_error", "12domain_error", "12length_error", "12out_of_range",
        "13runtime_error", "14overflow_error", "15underflow_error", "16invalid_argument"})
    if (name.consume_front(type)) return name;
  return {};
}

}  // namespace

std::string instrumented_name(StringRef name) {
  if (name.consume_front("_Z")) return ("_ZGTt" + name).str();
  return "_ZGTt" + std::to_string(name.size()) + name.str();
}

const llvm::GlobalValue* callee_of(const llvm::CallBase& call) {
  const llvm::Value* callee = call.getCalledOperand()->stripPointerCasts();
  while (const auto* const alias = llvm::dyn_cast<llvm::GlobalAlias>(callee)) {
    if (alias->isInterposable()) return alias;
    callee = alias->getAliasee()->stripPointerCasts();
  }
  return llvm::dyn_cast<llvm::GlobalValue>(callee);
}

std::string replacement_of(const llvm::GlobalValue& function) {
  if (function.hasLocalLinkage()) return {};
  const StringRef name = function.getName();
  if (const auto found = named().find(name); found != named().end()) return found->second.str();
  // libstdc++ has the instrumented forms of its exceptions' constructors and destructors.
  const StringRef made = of_a_standard_exception(name);
  if (of_the_run_time().contains(name) || made == "C1EPKc" || made == "C2EPKc" ||
      destroys_a_standard_exception(name))
    return instrumented_name(name);
  return {};
}

bool destroys_a_standard_exception(StringRef name) {
  const StringRef ended = of_a_standard_exception(name);
  return ended == "D0Ev" || ended == "D1Ev" || ended == "D2Ev" || name == "_ZNSt9exceptionD1Ev" ||
         name == "_ZNSt9exceptionD2Ev";
}

bool runs_as_it_is(const llvm::GlobalValue& function) {
  static const llvm::StringSet<> names = {"abort",
                                          "__assert_fail",
                                          "_ZSt9terminatev",
                                          "__cxa_pure_virtual",
                                          "__cxa_get_exception_ptr",
                                          "__stack_chk_fail"};
  const StringRef name = function.getName();
  if (name == "__clang_call_terminate") return true;
  if (!function.isDeclaration()) return false;
  // std::__throw_length_error() and others like it read a literal.
  if (name.starts_with("_ZSt") && name.contains("__throw_")) return true;
  if (names.contains(name) || name.starts_with("__ubsan_handle_") || name.starts_with("__asan_") ||
      name.starts_with("__sanitizer_"))
    return true;
  const auto* const f = llvm::dyn_cast<llvm::Function>(&function);
  return f != nullptr && f->doesNotAccessMemory();
}

std::string behind_thunk(StringRef name) {
  const auto number = [&name] {
    name.consume_front("n");
    const auto digits = name.take_while([](char c) { return c >= '0' && c <= '9'; });
    name = name.drop_front(digits.size());
    return !digits.empty() && name.consume_front("_");
  };
  if (name.consume_front("_ZTh")) return number() ? ("_Z" + name).str() : std::string();
  if (!name.consume_front("_ZTv")) return {};
  return number() && number() ? ("_Z" + name).str() : std::string();
}

}  // namespace perdure::plain::pass
