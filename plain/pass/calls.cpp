// SPDX-License-Identifier: BSD-3-Clause
#include "plain/pass/calls.hpp"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/Intrinsics.h>

namespace perdure::plain::pass {
namespace {

using llvm::StringRef;

// By the C ABI and C++'s.
const llvm::StringMap<StringRef>& named() {
  static const llvm::StringMap<StringRef> all = {
      {"malloc", "_ITM_malloc"},
      {"calloc", "_ITM_calloc"},
      {"free", "_ITM_free"},
      {"__cxa_allocate_exception", "_ITM_cxa_allocate_exception"},
      {"__cxa_free_exception", "_ITM_cxa_free_exception"},
      {"__cxa_throw", "_ITM_cxa_throw"},
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

// libstdc++ has those of its exceptions' constructors and destructors.
bool of_a_standard_exception(StringRef name) {
  if (!name.consume_front("_ZNSt")) return false;
  bool known = false;
  for (const StringRef type :
       {"11logic_error", "11range_error", "12domain_error", "12length_error", "12out_of_range",
        "13runtime_error", "14overflow_error", "15underflow_error", "16invalid_argument"})
    known = known || name.consume_front(type);
  return known && (name == "C1EPKc" || name == "C2EPKc" || name == "D0Ev" || name == "D1Ev" ||
                   name == "D2Ev");
}

}  // namespace

std::string instrumented_name(StringRef name) {
  if (name.consume_front("_Z")) return ("_ZGTt" + name).str();
  return "_ZGTt" + std::to_string(name.size()) + name.str();
}

std::string replacement_of(StringRef name) {
  if (const auto found = named().find(name); found != named().end()) return found->second.str();
  if (of_the_run_time().contains(name) || of_a_standard_exception(name))
    return instrumented_name(name);
  return {};
}

bool runs_as_it_is(const llvm::Function& function) {
  static const llvm::StringSet<> names = {"abort",
                                          "__assert_fail",
                                          "_ZSt9terminatev",
                                          "__clang_call_terminate",
                                          "__cxa_pure_virtual",
                                          "__cxa_rethrow",
                                          "__cxa_get_exception_ptr",
                                          "__stack_chk_fail"};
  const StringRef name = function.getName();
  if (names.contains(name) || name.starts_with("__ubsan_handle_") || name.starts_with("__asan_") ||
      name.starts_with("__sanitizer_"))
    return true;
  return function.doesNotAccessMemory();
}

}  // namespace perdure::plain::pass
