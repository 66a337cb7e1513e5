#include "pid.h"

static double limited(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

double controller_step(struct controller *controller, double error)
{
    controller->sum = limited(controller->sum + error, -1000.0, 1000.0);
    double setting = controller->proportional * error + controller->integral * controller->sum;
    return limited(setting, 0.0, 100.0);
}
