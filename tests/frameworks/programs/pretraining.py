"""Training of ELECTRA by the benchmark ``converge``."""

from harness.kind import Context, Workload
from harness.kinds.converge import Converge

from .learning import SilentReport
from .prelude import started
from .small import model_config_of


def learn(length, batch, micro_steps, parameters):
    model_config = model_config_of("topics_electra")
    adapter = started(model_config, batch=batch, steps=micro_steps, sequence=length)
    given = {parameter.name: parameter.default for parameter in Converge.parameters}
    given.update(parameters)
    workload = Workload(adapter.case, adapter.model_config, given, 1, None, 1)
    context = Context(workload, adapter.rank_context, adapter, [], SilentReport("", 0, ""))
    context.fields["framework_version"] = context.fields["device"] = ""
    Converge().measure(context)
    return {"curve": context.fields["curve"]}
