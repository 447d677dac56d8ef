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

std::string name_of(const GlobalValue& function) {
  return "'" + demangle(function.getName().str()) + "'";
}

// A pointer relative to a segment register, say: the run-time has none such.
void refuse_segment(const Value& pointer, const Instruction& at, std::vector<Problem>& problems) {
  if (pointer.getType()->isPointerTy() && pointer.getType()->getPointerAddressSpace() != 0)
    problems.push_back(
        {&at, "an access by a pointer of another address space", "access it outside of the block"});
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

// A definition that the linker may take another one for is not what will run, unless it is marked:
// then its form is taken by the same rule.
bool Instrumenter::is_made_here(const Function& function) const {
  if (function.isDeclaration()) return false;
  return is_safe(function) ? !function.hasAvailableExternallyLinkage() : !function.isInterposable();
}

Function* Instrumenter::thrown_destructor(const CallBase& call) const {
  const GlobalValue* const callee = callee_of(call);
  if (callee == nullptr || callee->getName() != "__cxa_throw" || call.arg_size() != 3)
    return nullptr;
  auto* const destructor = dyn_cast<Function>(call.getArgOperand(2)->stripPointerCastsAndAliases());
  return destructor == nullptr || destroys_a_standard_exception(destructor->getName()) ? nullptr
                                                                                       : destructor;
}

void Instrumenter::look_at(CallBase& call, std::vector<Problem>& problems,
                           SmallVectorImpl<Function*>& called) const {
  if (call.isInlineAsm()) {
    problems.push_back({&call, "assembly", "write it in C, or run it outside of the block"});
    return;
  }
  const GlobalValue* const callee = callee_of(call);
  if (callee == nullptr) return;  // by the table of forms
  for (unsigned i = 0; i < call.arg_size(); ++i)
    if (call.isByValArgument(i)) refuse_segment(*call.getArgOperand(i), call, problems);
  if (Function* const destructor = thrown_destructor(call); destructor != nullptr) {
    if (is_made_here(*destructor))
      called.push_back(destructor);
    else if (!is_safe(*destructor))
      problems.push_back(
          {&call,
           "an exception whose destructor, " + name_of(*destructor) + ", is not in this file",
           "throw one of the standard library's, or one of a plain type"});
  }
  if (const auto* const intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    for (const Use& argument : call.args()) refuse_segment(*argument, call, problems);
    if (!is_known(*intrinsic))
      problems.push_back({&call, "an operation of the compiler's, " + name_of(*callee),
                          "run it outside of the block"});
    return;
  }
  if (callee->getName() == block_mark) {
    problems.push_back({&call, "a block inside of a block", "call its function instead"});
    return;
  }
  if (!replacement_of(*callee).empty() || runs_as_it_is(*callee)) return;
  const auto* const function = dyn_cast<Function>(callee);
  if (function != nullptr && is_made_here(*function)) {
    called.push_back(const_cast<Function*>(function));
    return;
  }
  if (function != nullptr && is_safe(*function)) return;
  problems.push_back(
      {&call, "a call of " + name_of(*callee) + ", whose text is not in this file",
       "declare it PERDURE_TRANSACTION_SAFE and compile its file with the pass, or call it outside "
       "of the block"});
}

void Instrumenter::look_at(Instruction& one, std::vector<Problem>& problems,
                           SmallVectorImpl<Function*>& called) const {
  if (auto* const call = dyn_cast<CallBase>(&one)) return look_at(*call, problems, called);
  if (const Value* const pointer = getLoadStorePointerOperand(&one); pointer != nullptr)
    refuse_segment(*pointer, one, problems);
  const char* const advice = "access it outside of the block";
  if (one.isAtomic() || isa<FenceInst>(one))
    problems.push_back({&one, "an atomic access or a fence", advice});
  else if (one.isVolatile())
    problems.push_back({&one, "a volatile access", advice});
  else if (isa<VAArgInst>(one))
    problems.push_back({&one, "a variable argument", "pass a list of them"});
  else if (isa<IndirectBrInst>(one))  // its addresses may lie in tables outside of the function
    problems.push_back({&one, "a computed goto", "use a switch"});
}

std::vector<Problem> Instrumenter::new_problems_of(Function& function) {
  std::vector<Problem> problems;
  SmallVector<Function*> left = {&function};
  while (!left.empty()) {
    Function* const one = left.pop_back_val();
    if (!looked_at_.insert(one).second) continue;
    if (one->isVarArg() || one->callsFunctionThatReturnsTwice())
      problems.push_back({&one->getEntryBlock().front(),
                          "the function " + name_of(*one) +
                              ", which takes any number of arguments "
                              "or returns twice",
                          "call it outside of the block"});
    for (BasicBlock& block : *one)
      for (Instruction& i : block) look_at(i, problems, left);
  }
  return problems;
}

}  // namespace perdure::plain::pass
