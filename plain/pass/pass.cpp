// SPDX-License-Identifier: BSD-3-Clause
//
// The pass of Clang 19 for blocks of plain code (-fpass-plugin=). It makes instrumented forms of
// the functions that PlainPool::atomically() runs, of what those call, and of functions that are
// marked PERDURE_TRANSACTION_SAFE, behind all optimisations. What a block can't do is an error.
// Thread safety: a module is one thread's.
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/Utils/Local.h>

#include "plain/pass/calls.hpp"
#include "plain/pass/instrument.hpp"

namespace perdure::plain::pass {
namespace {

using namespace llvm;  // NOLINT(google-build-using-namespace)

void report(const Problem& problem) {
  const Function& function = *problem.at->getFunction();
  const std::string text =
      "perdure: found " + problem.found + ", in a block of a transaction; " + problem.advice;
  function.getContext().diagnose(
      DiagnosticInfoUnsupported(function, text, DiagnosticLocation(problem.at->getDebugLoc())));
}

class Blocks : public PassInfoMixin<Blocks> {
 public:
  static bool isRequired() { return true; }  // NOLINT(readability-identifier-naming): LLVM's name

  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    Instrumenter instrumenter(module);
    const std::vector<CallBase*> blocks = blocks_of(module);
    bool failed = false, any = false;
    const auto form_of = [&](Function& function) -> Function* {
      const std::vector<Problem> problems = instrumenter.new_problems_of(function);
      for (const Problem& problem : problems) report(problem);
      failed = failed || !problems.empty();
      if (failed) return nullptr;
      any = true;
      return instrumenter.form_of(function);
    };
    for (CallBase* const call : blocks) {
      auto* const body = dyn_cast<Function>(call->getArgOperand(0)->stripPointerCastsAndAliases());
      if (body == nullptr || body->isDeclaration()) {
        report({call, "a block whose function is not in this file", "define it here"});
        failed = true;
      } else if (Function* const form = form_of(*body); form != nullptr) {
        call->replaceAllUsesWith(form);
        if (auto* const invoke = dyn_cast<InvokeInst>(call); invoke != nullptr)
          changeToCall(invoke)->eraseFromParent();
        else
          call->eraseFromParent();
      }
    }
    std::vector<Function*> others;
    for (Function& function : module)
      if (instrumenter.is_safe(function) && !function.isDeclaration() &&
          !function.hasAvailableExternallyLinkage())
        others.push_back(&function);
    for (Function* const function : others) (void)form_of(*function);
    if (any && !failed) {
      instrumenter.write_aliases();
      instrumenter.write_table();
    }
    return any ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

 private:
  static std::vector<CallBase*> blocks_of(Module& module) {
    std::vector<CallBase*> calls;
    if (Function* const mark = module.getFunction(block_mark); mark != nullptr)
      for (User* const user : mark->users())
        if (auto* const call = dyn_cast<CallBase>(user);
            call != nullptr && call->getCalledOperand() == mark)
          calls.push_back(call);
    return calls;
  }
};

}  // namespace
}  // namespace perdure::plain::pass

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "perdure-plain", "1", [](llvm::PassBuilder& builder) {
            builder.registerOptimizerLastEPCallback(
                [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
                  passes.addPass(perdure::plain::pass::Blocks());
                });
          }};
}
