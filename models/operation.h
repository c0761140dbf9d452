// The contract of a program operation ("user", "lock", "repeat", ...).
//
// One operation of one program is one object. It is filled once, by describe() with a visitor that reads, and is
// immutable from then on: all tasks that run the program share it. What a running operation remembers lives in
// the coroutine that run() returns. To add an operation, add a file to models/operations and its name to the
// list in models/CMakeLists.txt.
#pragma once

#include "models/guest/co.h"
#include "models/params.h"

namespace vcpusim {

class Task;

class Operation {
 public:
  virtual ~Operation() = default;

  // The first key visited is the operation's own name and holds its main argument.
  virtual void describe(OperationVisitor& visitor) = 0;

  // Runs the operation once, in the guest task `self`. The returned coroutine may outlive no part of `self`.
  virtual Co run(Task& self) const = 0;
};

}  // namespace vcpusim
