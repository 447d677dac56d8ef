// SPDX-License-Identifier: BSD-3-Clause
//
// Instrumented forms of functions: clones in which each access to memory that may be others' is a
// call of the run-time (libitm's ABI, as GCC's), and each call one of an instrumented form.
// Thread safety: a module is one thread's.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace perdure::plain::pass {

/// Why a function can't be instrumented.
struct Problem {
  const llvm::Instruction* at;
  std::string found, advice;
};

class Instrumenter {
 public:
  explicit Instrumenter(llvm::Module& module);

  /// Whether the function is marked as one that blocks of other files may call.
  [[nodiscard]] bool is_safe(const llvm::Function& function) const {
    return safe_.contains(&function);
  }
  /// What stands against it, in the function and in those that it calls, as far as no earlier call
  /// has looked at them.
  [[nodiscard]] std::vector<Problem> new_problems_of(llvm::Function& function);
  /// The function's instrumented form, and those that it needs. REQUIRES: no problem was found.
  llvm::Function* form_of(llvm::Function& function);
  /// Names the forms of marked functions by all names that these have (constructors have two).
  void write_aliases();
  /// Lets blocks find the forms of functions behind pointers (_ITM_registerTMCloneTable).
  void write_table();

 private:
  [[nodiscard]] bool is_made_here(const llvm::Function& function) const;
  /// Of a throw in a block the exception's destructor, which has to be instrumented; null: none.
  [[nodiscard]] llvm::Function* thrown_destructor(const llvm::CallBase& call) const;
  void look_at(llvm::Instruction& one, std::vector<Problem>& problems,
               llvm::SmallVectorImpl<llvm::Function*>& called) const;
  void look_at(llvm::CallBase& call, std::vector<Problem>& problems,
               llvm::SmallVectorImpl<llvm::Function*>& called) const;
  llvm::Function* make(llvm::Function& function);
  void rewrite(llvm::Function& form);
  void rewrite(llvm::LoadInst& load);
  void rewrite(llvm::StoreInst& store);
  void rewrite(llvm::MemIntrinsic& call);
  void rewrite(llvm::CallBase& call);
  void fetch(llvm::IRBuilderBase& builder, llvm::Value* to, llvm::Value* from, llvm::Value* bytes);
  llvm::FunctionCallee run_time(llvm::StringRef name, llvm::Type* result,
                                llvm::ArrayRef<llvm::Type*> arguments);

  llvm::Module& module_;
  llvm::DenseSet<const llvm::Function*> safe_;
  llvm::DenseSet<const llvm::Function*> looked_at_;
  llvm::DenseMap<llvm::Function*, llvm::Function*> forms_;
  std::vector<std::pair<llvm::Function*, llvm::Function*>> in_order_;  // of forms_
  std::vector<llvm::Function*> unwritten_;  // forms that are still copies
};

}  // namespace perdure::plain::pass
