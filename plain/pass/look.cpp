// SPDX-License-Identifier: BSD-3-Clause
//
// What a block can't do, found before anything is rewritten.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IntrinsicInst.h>

#include "plain/pass/calls.hpp"
#include "plain/pass/instrument.hpp"

namespace perdure::plain::pass {
namespace {

using namespace llvm;  // NOLINT(google-build-using-namespace)

std::string name_of(const Function& function) {
  return "'" + demangle(function.getName().str()) + "'";
}

// Copies and fills are calls of the run-time; others that touch no memory of the program stay.
bool is_known(const IntrinsicInst& call) {
  if (isa<MemIntrinsic>(call)) return !cast<MemIntrinsic>(call).isVolatile();
  switch (call.getIntrinsicID()) {
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::invariant_start:
    case Intrinsic::invariant_end:
    case Intrinsic::stacksave:
    case Intrinsic::stackrestore:
    case Intrinsic::assume:
    case Intrinsic::experimental_noalias_scope_decl:
    case Intrinsic::sideeffect:
    case Intrinsic::donothing:
    case Intrinsic::trap:
    case Intrinsic::ubsantrap:
    case Intrinsic::prefetch:
    case Intrinsic::var_annotation: return true;
    default: return call.doesNotAccessMemory() || call.isAssumeLikeIntrinsic();
  }
}

}  // namespace

// A definition that the linker may take another one for is not what will run.
bool Instrumenter::is_made_here(const Function& function) const {
  return !function.isDeclaration() && !function.isInterposable() &&
         !(is_safe(function) && function.hasAvailableExternallyLinkage());
}

void Instrumenter::look_at(CallBase& call, std::vector<Problem>& problems,
                           SmallVectorImpl<Function*>& called) const {
  if (call.isInlineAsm()) {
    problems.push_back({&call, "assembly", "write it in C, or run it outside of the block"});
    return;
  }
  const auto* const callee =
      dyn_cast<Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
  if (callee == nullptr) return;  // by the table of clones
  if (const auto* const intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    if (!is_known(*intrinsic))
      problems.push_back({&call, "an operation of the compiler's, " + name_of(*callee),
                          "run it outside of the block"});
    return;
  }
  if (callee->getName() == block_mark) {
    problems.push_back({&call, "a block inside of a block", "call its function instead"});
    return;
  }
  if (!replacement_of(callee->getName()).empty() || runs_as_it_is(*callee) ||
      call.doesNotAccessMemory())
    return;
  if (is_made_here(*callee)) {
    called.push_back(const_cast<Function*>(callee));
    return;
  }
  if (is_safe(*callee)) return;
  problems.push_back(
      {&call, "a call of " + name_of(*callee) + ", whose text is not in this file",
       "declare it PERDURE_TRANSACTION_SAFE and compile its file with the pass, or call it outside "
       "of the block"});
}

void Instrumenter::look_at(Instruction& one, std::vector<Problem>& problems,
                           SmallVectorImpl<Function*>& called) const {
  if (auto* const call = dyn_cast<CallBase>(&one)) return look_at(*call, problems, called);
  const char* const advice = "access it outside of the block";
  if (one.isAtomic() || isa<FenceInst>(one))
    problems.push_back({&one, "an atomic access or a fence", advice});
  else if (one.isVolatile())
    problems.push_back({&one, "a volatile access", advice});
  else if (isa<VAArgInst>(one))
    problems.push_back({&one, "a variable argument", "pass a list of them"});
}

std::vector<Problem> Instrumenter::problems_of(Function& function) const {
  std::vector<Problem> problems;
  SmallVector<Function*> left = {&function};
  DenseSet<Function*> seen = {&function};
  while (!left.empty()) {
    Function* const one = left.pop_back_val();
    SmallVector<Function*> called;
    if (one->isVarArg() || one->callsFunctionThatReturnsTwice())
      problems.push_back({&one->getEntryBlock().front(),
                          "the function " + name_of(*one) +
                              ", which takes any number of arguments "
                              "or returns twice",
                          "call it outside of the block"});
    for (BasicBlock& block : *one)
      for (Instruction& i : block) look_at(i, problems, called);
    for (Function* const f : called)
      if (seen.insert(f).second) left.push_back(f);
  }
  return problems;
}

}  // namespace perdure::plain::pass
